import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { headers, post } from '../edge/calls.ts';
import { startEdge, type TestEdge } from '../edge/edge.ts';
import { BOX_KEY } from '../edge/upstream.ts';
import { bundle } from '../edge/workerd.ts';
import { fixture } from '../fixture.ts';
import { SERVER } from '../model-server/server.ts';
import { mediaFile } from './golden.ts';

const COMMIT = '0123456789'.repeat(4);
const MODEL = 'test/smolvlm';

let home: string;
let box: ChildProcess;
let url: string;
let edge: TestEdge;

/** Starts a box with the vision model, as if it had been pulled, and an edge in front of it. */
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'assay-box-'));
  const repository = join(home, 'hub', 'models--test--smolvlm');
  await cp(fixture('media/smolvlm'), join(repository, 'snapshots', COMMIT), { recursive: true });
  await mkdir(join(repository, 'refs'));
  await writeFile(join(repository, 'refs', 'main'), COMMIT);
  const args = [
    SERVER,
    'serve',
    '--port',
    '0',
    '--home',
    home,
    '--api-key',
    BOX_KEY,
    '--device',
    'cpu',
    '--model',
    MODEL,
  ];
  const env = { ...process.env, HF_HUB_CACHE: join(home, 'hub') };
  box = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env });
  url = await said(box, /listens on (http:\S+)/u);
  await said(box, /is ready/u);
  edge = await startEdge(await bundle(), [{ name: 'npu-1', url }], { models: [MODEL] });
}, 180_000);
afterAll(async () => {
  await edge?.close();
  box?.kill('SIGTERM');
  await rm(home, { recursive: true, force: true });
});

/** Tells the box that a request is of the edge's caller, whose prefix cache it then uses. */
const SAME_CALLER = { 'assay-caller': 'test-key', 'assay-cache-scope': 'key test-key' };
const { data, mimeType } = mediaFile('large.png');
const dataUrl = `data:${mimeType};base64,${data}`;
const images = [{ type: 'base64', data, mime_type: mimeType }];
const tasks = [
  { type: 'decide', name: 'a', question: 'Is it a cat?', options: ['yes', 'no'] },
  { type: 'extract', name: 'b', instruction: 'What is it?', keys: ['thing'] },
];
const questions = [{ type: 'predicate', instructions: 'Is it a cat?' }];
const damaged = { ...images[0], data: data.slice(0, 4000) };

it.each<[string, string, object]>([
  ['tasks', '/v1/tasks', { context: 'a cat', images, tasks }],
  [
    'tasks in messages',
    '/v1/tasks',
    { messages: [{ role: 'user', content: [{ type: 'image', image: images[0] }] }], tasks },
  ],
  [
    'decisions',
    '/v1/decisions',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: dataUrl }] }], questions },
  ],
  [
    'System One',
    '/v1/systemone',
    { state: 'a cat', images: [data], questions: { q: { type: 'noul', instructions: 'Is it?' } } },
  ],
  ['a damaged image', '/v1/tasks', { context: '', images: [images[0], damaged], tasks }],
  [
    'a damaged image of System One',
    '/v1/systemone',
    { state: '', images: [damaged.data], questions: { q: { type: 'noul' } } },
  ],
])(
  '%s are answered through the edge as by the box',
  async (_, path, body) => {
    const sent = JSON.stringify({ model: MODEL, ...body });
    const ask = () =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...headers, ...SAME_CALLER, authorization: `Bearer ${BOX_KEY}`, 'x-request-id': 'same' },
        body: sent,
      });
    // The first one fills the prefix cache, because a text that is read in other parts can differ in the last digits.
    await (await ask()).arrayBuffer();
    const direct = await ask();
    const through = await post(edge, path, sent, { headers: { 'x-request-id': 'same' } });
    expect(through.status).toBe(direct.status);
    expect(rounded(await through.text())).toEqual(rounded(await direct.text()));
  },
  60_000,
);

/** Reads an answer without the last digits of its numbers, where exponentials differ between versions of V8. */
function rounded(json: string): unknown {
  return JSON.parse(json, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(12)) : value));
}

/** Returns the match in a line that a process prints. */
function said(child: ChildProcess, line: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    if (!child.stdout) throw new Error('the box has no output');
    createInterface(child.stdout).on('line', (text) => {
      const match = line.exec(text);
      if (match) resolve(match[1] ?? match[0]);
    });
    child.once('exit', (code) => reject(new Error(`the box ended with status ${code}`)));
  });
}
