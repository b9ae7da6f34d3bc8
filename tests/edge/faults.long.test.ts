import { afterEach, describe, expect, it } from 'vitest';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { ChatStep } from '../scripted-backend/script.ts';
import { chat, errorCode, eventsOf, post, question } from './calls.ts';
import { withEdge } from './fixture.ts';

const start: ChatStep = { event: { type: 'start', model: 'assay/starter' } };
const word: ChatStep = { event: { type: 'content', text: 'Hello' } };
const usage = { promptTokens: 1, completionTokens: 1 };
const finish: ChatStep = { event: { type: 'finish', reason: 'stop', usage, metrics: NO_METRICS } };

describe('a box that fails', () => {
  const fixture = withEdge();
  afterEach(() => {
    for (const upstream of fixture.upstreams) upstream.play({});
  });

  it('is replaced by the next one when it refuses the connection', async () => {
    const { upstreams, edge } = fixture;
    await Promise.all(upstreams.slice(1).map((upstream) => upstream.kill()));
    // Whichever upstream is first for a context, npu-1 is tried third at the latest.
    for (const context of ['a', 'b', 'c']) {
      const response = await post(edge, '/v1/tasks', question(context));
      expect(response.status).toBe(200);
      await response.body?.cancel();
    }
    expect(fixture.asked()).toEqual([upstreams[0]]);
    await Promise.all(upstreams.slice(1).map((upstream) => upstream.restart()));
  });

  it('ends the stream with one error event when it is killed after its first word', async () => {
    const { upstreams, edge } = fixture;
    for (const upstream of upstreams) upstream.play({ chat: [start, word, { waitMs: 'forever' }] });
    const response = await post(edge, '/v1/chat/completions', chat('killed'));
    expect(response.status).toBe(200);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('Hello')) text += (await reader.read()).value;
    const [asked] = fixture.asked();
    await asked!.kill();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += piece.value;
    await asked!.restart();
    expect(eventsOf(text).at(-1)).toMatchObject({ error: { code: 'backend_unreachable', type: 'server_error' } });
    expect(fixture.asked()).toHaveLength(1);
  });

  it('is replaced when it is busy, and the caller hears of it only when all are', async () => {
    const { upstreams, edge } = fixture;
    const busy = { code: 'overloaded', retryAfterSeconds: 4 } as const;
    for (const upstream of upstreams.slice(1)) upstream.play({ tasks: { fail: busy } });
    expect((await post(edge, '/v1/tasks', question('busy'))).status).toBe(200);
    upstreams[0]!.play({ tasks: { fail: { ...busy, retryAfterSeconds: 2 } } });
    const response = await post(edge, '/v1/tasks', question('busy'));
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2']);
    expect(await errorCode(response)).toBe('overloaded');
  });
});

describe('boxes that are all down', () => {
  const fixture = withEdge();

  it('are told as such at once, then left alone, and found again when they are back', async () => {
    const { upstreams, edge } = fixture;
    await Promise.all(upstreams.map((upstream) => upstream.kill()));
    for (let i = 0; i < 4; i++) {
      const response = await post(edge, '/v1/tasks', question(`down ${i}`));
      expect(response.status).toBe(500);
      expect(await errorCode(response)).toBe('backend_unreachable');
    }
    const health = await fetch(`${edge.urls[0]}/health`);
    expect(await health.json()).toMatchObject({ status: 'error' });
    await Promise.all(upstreams.map((upstream) => upstream.restart()));
    // The breakers stay open for five seconds.
    const answered = async () => (await post(edge, '/v1/tasks', question('back'))).status;
    await expect.poll(answered, { interval: 500 }).toBe(200);
    const status = async () => ((await (await fetch(`${edge.urls[0]}/health`)).json()) as { status: string }).status;
    const ok = async () => {
      await post(edge, '/v1/tasks', question('again'));
      return status();
    };
    await expect.poll(ok, { interval: 500 }).toBe('ok');
  });
});

describe('a slow box', () => {
  const fixture = withEdge({ vars: { DEADLINE_SECONDS: 2 } });

  it('is given up at the deadline, and stops its work', async () => {
    const { upstreams, edge } = fixture;
    for (const upstream of upstreams) upstream.play({ tasks: { waitMs: 'forever' } });
    const response = await post(edge, '/v1/tasks', question('slow'));
    expect(response.status).toBe(500);
    expect(await errorCode(response)).toBe('timeout');
    const [asked] = fixture.asked();
    await expect.poll(() => asked!.recorded.map(({ call }) => call)).toContain('aborted');
    expect(fixture.asked()).toHaveLength(1);
  });

  it('may stream for longer than that', async () => {
    const { upstreams, edge } = fixture;
    for (const upstream of upstreams) upstream.play({ chat: [start, { waitMs: 2_500 }, word, finish] });
    const response = await post(edge, '/v1/chat/completions', chat('long'));
    expect(eventsOf(await response.text()).at(-1)).toBe('[DONE]');
  });
});

describe('a caller who leaves', () => {
  const fixture = withEdge();

  it('stops the box', async () => {
    const { upstreams, edge } = fixture;
    for (const upstream of upstreams) upstream.play({ chat: [start, word, { waitMs: 'forever' }] });
    const leaving = new AbortController();
    const response = await post(edge, '/v1/chat/completions', chat('leave'), { signal: leaving.signal });
    await response.body!.getReader().read();
    const [asked] = fixture.asked();
    leaving.abort();
    await expect.poll(() => asked!.recorded.map(({ call }) => call)).toContain('aborted');
  });
});
