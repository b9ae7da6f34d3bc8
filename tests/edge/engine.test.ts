import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SERVER } from '../model-server/server.ts';
import { chat, eventsOf, headers, post } from './calls.ts';
import { startEdge, type TestEdge } from './edge.ts';
import { BOX_KEY } from './upstream.ts';
import { bundle } from './workerd.ts';

describe('a box with the engine and the starter model', () => {
  let home: string;
  let upstream: ChildProcess;
  let url: string;
  let edge: TestEdge;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'assay-box-'));
    const args = [SERVER, 'serve', '--port', '0', '--home', home, '--api-key', BOX_KEY, '--device', 'cpu'];
    upstream = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    url = await said(upstream, /listens on (http:\S+)/);
    await said(upstream, /is ready/);
    edge = await startEdge(await bundle(), [{ name: 'npu-1', url }]);
  }, 120_000);
  afterAll(async () => {
    await edge?.close();
    upstream?.kill('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });

  it('gives the same answers through the edge as directly', async () => {
    const body = JSON.stringify({
      model: 'assay/starter',
      context: 'The parcel came two weeks late and the mug was broken. I want my money back.',
      tasks: [
        { type: 'decide', name: '10', question: 'Does the customer ask for a refund?', options: ['yes', 'no'] },
        { type: 'decide', name: '2', question: 'What was broken?' },
        {
          type: 'extract',
          name: '__proto__',
          instruction: 'What was broken, and how late was it?',
          keys: ['item', '1'],
        },
        { type: 'extract', name: 's', instruction: 'The facts.', schema: { item: 'string', weeks: 'integer' } },
      ],
      max_output_tokens: 64,
    });
    const ask = () =>
      fetch(`${url}/v1/tasks`, {
        method: 'POST',
        headers: { ...headers, authorization: `Bearer ${BOX_KEY}`, 'x-request-id': 'same' },
        body,
      });
    // The first one fills the prefix cache. Then differences in the last digits decide no near-tie, whatever the CPU.
    await (await ask()).arrayBuffer();
    const direct = await ask();
    const through = await post(edge, '/v1/tasks', body, { headers: { 'x-request-id': 'same' } });
    expect([direct.status, through.status]).toEqual([200, 200]);
    expect(through.headers.get('assay-cut-tasks')).toBe(direct.headers.get('assay-cut-tasks'));
    expect(await through.text()).toBe(await direct.text());
  }, 60_000);

  it('streams a chat through the edge', async () => {
    const sent = { ...chat('Say hello.'), max_tokens: 8, stream_options: { include_usage: true } };
    const events = eventsOf(await (await post(edge, '/v1/chat/completions', sent)).text());
    expect(events.at(-1)).toBe('[DONE]');
    const last = events.at(-2) as {
      usage: { completion_tokens: number };
      metrics: { device: string; total_ms: number };
    };
    expect(last.usage.completion_tokens).toBeGreaterThan(0);
    expect(last.metrics).toMatchObject({ device: 'CPU', total_ms: expect.any(Number) });
  }, 60_000);

  it('ends the stream with an error when its process is killed', async () => {
    // Nearly random tokens: the model neither comes to an end by itself nor repeats itself.
    const endless = { ...chat('Tell a long story.'), max_tokens: 2_000, temperature: 2, seed: 1 };
    const response = await post(edge, '/v1/chat/completions', endless);
    expect(response.status).toBe(200);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('"content"')) text += (await reader.read()).value;
    upstream.kill('SIGKILL');
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += piece.value;
    expect(eventsOf(text).at(-1)).toMatchObject({ error: { code: 'backend_unreachable' } });
  }, 60_000);
});

/** Returns the match in a line that a process prints. */
function said(child: ChildProcess, line: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    createInterface(child.stdout!).on('line', (text) => {
      const match = line.exec(text);
      if (match) resolve(match[1] ?? match[0]);
    });
    child.once('exit', (code) => reject(new Error(`the box ended with status ${code}`)));
  });
}
