import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { hubRepository } from '../hub/repository.ts';
import { fixtureModel } from '../registry/machine.ts';
import { type Json, newBase, residentBytes, type ServerProcess, startServer } from './server.ts';

/*
 * The routes and the states of a model (docs/model-api.md, M-3 to M-11), row by row, against a real server process with
 * real (tiny) models. The rows run in this order: each begins in the state that the previous one left.
 */

const QWEN = 'acme/qwen3';
const LLAMA = 'acme/llama';
let hub: HubServer;
let server: ServerProcess;

beforeAll(async () => {
  const broken = hubRepository('acme/broken', {
    'config.json': '{"max_position_embeddings":512}',
    'tokenizer.json': '{}',
    'onnx/model.onnx': 'no graph',
  });
  hub = await HubServer.start(
    await fixtureModel('optimum/qwen3', QWEN),
    await fixtureModel('genai/llama', LLAMA),
    broken,
  );
  server = await startServer(hub, await newBase());
});
afterAll(async () => {
  await server.stop();
  await hub.stop();
});

const chat = (body: Json = {}) =>
  server.call('POST', '/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4, ...body });
const statusOf = async (id: string) =>
  (await server.call('GET', '/v1/models')).body.data.find((one: Json) => one.id === id)?.status;

describe('no model loaded', () => {
  it('GET /', async () => {
    expect(await server.call('GET', '/')).toMatchObject({
      status: 200,
      body: { status: 'running', active_model: 'none', description: expect.any(String) },
    });
  });

  it.each(['/health', '/currentmodel'])('GET %s', async (path) => {
    expect(await server.call('GET', path)).toEqual({
      status: 200,
      body: { status: 'idle', state: 'unloaded', device: 'CPU', active_model: 'none' },
    });
  });

  it.each(['/v1/models', '/models'])('GET %s lists what ships', async (path) => {
    const { status, body } = await server.call('GET', path);
    expect({ status, object: body.object }).toEqual({ status: 200, object: 'list' });
    for (const model of body.data)
      expect(model).toEqual({
        id: expect.stringMatching(/^assay\//),
        object: 'model',
        created: expect.any(Number),
        owned_by: 'assay',
        status: 'available',
      });
  });

  it('POST /unload is 200 and does nothing', async () => {
    expect(await server.call('POST', '/unload')).toEqual({
      status: 200,
      body: { status: 'success', model: null, state: 'unloaded' },
    });
  });

  it('a chat is 409 model_not_loaded', async () => {
    expect(await chat()).toMatchObject({ status: 409, body: { error: { code: 'model_not_loaded' } } });
  });

  it.each(['/load', '/v1/models/load'])(
    'POST %s of what is not here is 404, with the command that fetches it',
    async (path) => {
      const { status, body } = await server.call('POST', path, { model: QWEN });
      expect({ status, error: body.error }).toMatchObject({
        status: 404,
        error: { code: 'model_not_found', message: expect.stringContaining(`assay pull ${QWEN}`) },
      });
    },
  );

  it.each([
    ['POST', '/delete', { model: QWEN }],
    ['POST', '/v1/models/delete', { model: QWEN }],
    ['DELETE', `/v1/models/${QWEN}`, undefined],
  ])('%s %s of what is not here is 404', async (method, path, body) => {
    expect(await server.call(method, path, body)).toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found' } },
    });
  });

  it('POST /download with allow_download:false is 409 not_downloaded', async () => {
    expect(await server.call('POST', '/download', { model: QWEN, allow_download: false })).toMatchObject({
      status: 409,
      body: { error: { code: 'not_downloaded' } },
    });
  });
});

describe('download', () => {
  it('POST /download fetches and compiles, and answers when that is done', async () => {
    const { status, body } = await server.call('POST', '/download', { model: QWEN });
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        status: 'success',
        model: QWEN,
        state: 'compiled',
        bytes: expect.any(Number),
        compiled: true,
        max_prompt_len: 512,
        precision: expect.stringMatching(/^(int8|int8-blocks|int4|float)$/),
        precision_reason: expect.stringContaining('logits off by'),
      },
    });
    expect(body.bytes).toBeGreaterThan(100_000);
    expect(await statusOf(QWEN)).toBe('compiled');
  });

  it('POST /v1/models/download as an event stream tells of its progress and ends with the result', async () => {
    const response = await fetch(`${server.url}/v1/models/download`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ model: LLAMA, max_prompt_len: 128 }),
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const events = (await response.text())
      .split('\n\n')
      .filter((one) => one.startsWith('data: '))
      .map((one) => JSON.parse(one.slice(6)));
    const stages = [...new Set(events.map((event) => event.status))];
    expect(stages).toEqual(['downloading', 'verifying', 'compiling', 'success']);
    expect(events.at(-1)).toMatchObject({ model: LLAMA, max_prompt_len: 128, compiled: true });
  });

  it('of a model that the hub does not have is 404', async () => {
    expect(await server.call('POST', '/download', { model: 'acme/none' })).toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found' } },
    });
  });

  it('of a model that cannot be compiled is 500 with the reason', async () => {
    const { status, body } = await server.call('POST', '/download', { model: 'acme/broken' });
    expect({ status, body }).toMatchObject({ status: 500, body: { error: { code: 'engine_failed' } } });
    expect(await statusOf('acme/broken')).toBe('downloaded');
  });
});

describe('no model loaded → load → model loaded', () => {
  it('POST /load loads, and says what was done', async () => {
    expect(await server.call('POST', '/load', { model: QWEN })).toEqual({
      status: 200,
      body: {
        status: 'success',
        model: QWEN,
        state: 'loaded',
        device: 'CPU',
        load_ms: expect.any(Number),
        compiled: false,
        max_prompt_len: 512,
        precision: expect.stringMatching(/^(int8|int8-blocks|int4|float)$/),
        precision_reason: expect.stringContaining('logits off by'),
      },
    });
    const { deterministic, deterministic_reason: why, ...health } = await server.health();
    expect(why === undefined).toBe(deterministic);
    expect(health).toEqual({
      precision: expect.stringMatching(/^(int8|int8-blocks|int4|float)$/),
      precision_reason: expect.stringContaining('logits off by'),
      status: 'ok',
      state: 'loaded',
      device: 'CPU',
      active_model: QWEN,
      max_prompt_len: 512,
      heartbeat_age_ms: expect.any(Number),
    });
    expect((await server.call('GET', '/')).body.active_model).toBe(QWEN);
    expect(await statusOf(QWEN)).toBe('active');
  });

  it('a second load of it is 200', async () => {
    expect(await server.call('POST', '/load', { model: QWEN })).toMatchObject({
      status: 200,
      body: { compiled: false, load_ms: 0 },
    });
  });

  it('POST /v1/models/load with another max_prompt_len compiles and swaps', async () => {
    expect(await server.call('POST', '/v1/models/load', { model: QWEN, max_prompt_len: 64 })).toMatchObject({
      status: 200,
      body: { compiled: true, max_prompt_len: 64 },
    });
    expect(await chat({ messages: [{ role: 'user', content: 'word '.repeat(200) }] })).toMatchObject({
      status: 400,
      body: { error: { code: 'input_too_long' } },
    });
  });

  it.each([8, 100_000])('max_prompt_len %i is 400', async (max_prompt_len) => {
    expect(await server.call('POST', '/v1/models/load', { model: QWEN, max_prompt_len })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_value', param: 'max_prompt_len' } },
    });
    expect((await server.health()).state).toBe('loaded');
  });
});

describe('model loaded', () => {
  it('POST /v1/chat/completions answers, with metrics', async () => {
    // A drawn token may be the end, before which there is no first one.
    const { status, body } = await chat({ temperature: 0 });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        object: 'chat.completion',
        model: QWEN,
        choices: [{ message: { role: 'assistant', content: expect.any(String) } }],
        metrics: { time_to_first_token_ms: expect.any(Number), device: 'CPU' },
      },
    });
  });

  it('with stream: content, one summary with metrics, then data: [DONE]', async () => {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], max_tokens: 6, stream: true }),
    });
    const lines = (await response.text()).split('\n\n').filter((one) => one.startsWith('data: '));
    expect(lines.at(-1)).toBe('data: [DONE]');
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line.slice(6)));
    expect(chunks[0].choices[0].delta.role).toBe('assistant');
    expect(chunks.filter((chunk) => chunk.metrics)).toHaveLength(1);
    expect(chunks.at(-1)).toMatchObject({
      choices: [{ delta: {}, finish_reason: expect.any(String) }],
      metrics: { device: 'CPU' },
    });
  });

  it('a chat with a known model that is not active is 409, with an unknown one 404', async () => {
    expect(await chat({ model: LLAMA })).toMatchObject({ status: 409, body: { error: { code: 'model_not_loaded' } } });
    expect(await chat({ model: 'acme/none' })).toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found' } },
    });
  });

  it.each([true, false])('deleting it with compiled_only %s is 409 model_in_use', async (compiled_only) => {
    expect(await server.call('POST', '/delete', { model: QWEN, compiled_only })).toMatchObject({
      status: 409,
      body: { error: { code: 'model_in_use' } },
    });
  });

  it('loading another one swaps', async () => {
    expect(await server.call('POST', '/load', { model: LLAMA })).toMatchObject({ status: 200, body: { model: LLAMA } });
    expect(await server.health()).toMatchObject({ state: 'loaded', active_model: LLAMA });
    expect(await statusOf(QWEN)).toBe('compiled');
    expect((await chat()).body.model).toBe(LLAMA);
  });

  it('loading one that cannot be compiled is 500, and the loaded one goes on', async () => {
    expect(await server.call('POST', '/load', { model: 'acme/broken' })).toMatchObject({
      status: 500,
      body: { error: { code: 'engine_failed' } },
    });
    expect(await server.health()).toMatchObject({ state: 'loaded', active_model: LLAMA });
    expect((await chat()).status).toBe(200);
  });
});

describe('model loaded → unload → no model loaded', () => {
  it('POST /unload says what was unloaded', async () => {
    expect(await server.call('POST', '/unload')).toEqual({
      status: 200,
      body: { status: 'success', model: LLAMA, state: 'unloaded' },
    });
    expect(await server.health()).toEqual({ status: 'idle', state: 'unloaded', device: 'CPU', active_model: 'none' });
    expect((await chat()).status).toBe(409);
  });

  it.runIf(process.platform === 'linux')(
    'resident memory is then within 50 MB of what it was before the load',
    async () => {
      for (let i = 0; i < 3; i += 1) {
        const before = await residentBytes(server.pid);
        await server.call('POST', '/load', { model: QWEN });
        await chat({ max_tokens: 32 });
        const loaded = await residentBytes(server.pid);
        await server.call('POST', '/unload');
        const after = await residentBytes(server.pid);
        // Without the engine process's own end the test could not fail.
        expect(loaded - before).toBeGreaterThan(60e6);
        expect(after - before).toBeLessThan(50e6);
      }
    },
  );

  it('a failed load leaves error with its reason, and the next load works', async () => {
    expect((await server.call('POST', '/load', { model: 'acme/broken' })).status).toBe(500);
    expect(await server.health()).toMatchObject({
      status: 'error',
      state: 'error',
      active_model: expect.any(String),
      reason: expect.stringMatching(/./),
    });
    expect(await statusOf('acme/broken')).toBe('error');
    expect(await server.call('POST', '/load', { model: QWEN })).toMatchObject({ status: 200 });
    await server.call('POST', '/unload');
  });
});

describe('delete', () => {
  const remove = (body: Json) => server.call('POST', '/v1/models/delete', body);

  it('with compiled_only removes the compiled files', async () => {
    expect(await remove({ model: QWEN, compiled_only: true })).toEqual({
      status: 200,
      body: {
        status: 'success',
        model: QWEN,
        state: 'downloaded',
        removed: [{ kind: 'compiled', bytes: expect.any(Number) }],
      },
    });
    expect(await statusOf(QWEN)).toBe('downloaded');
    expect(await remove({ model: QWEN, compiled_only: true })).toMatchObject({ status: 200, body: { removed: [] } });
  });

  it('without it removes compiled files, weights and lock files', async () => {
    const { body } = await remove({ model: LLAMA });
    expect(body).toMatchObject({ status: 'success', state: 'deleted' });
    expect(body.removed.map((one: Json) => one.kind)).toEqual(['compiled', 'weights', 'locks']);
    expect(await statusOf(LLAMA)).toBeUndefined();
  });

  it('DELETE /v1/models/{model_id} is the same', async () => {
    expect(await server.call('DELETE', `/v1/models/${QWEN}`)).toMatchObject({
      status: 200,
      body: { state: 'deleted' },
    });
    expect(await statusOf(QWEN)).toBeUndefined();
  });
});

it('500 hostile ids on every route that takes one: refused, and nothing outside the roots is touched', async () => {
  const outside = join(server.base, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'precious'), 'precious');
  const before = await readdir(server.base);
  const parts = fc.constantFrom(
    '..',
    '.',
    '/',
    '%2f',
    '%2e%2e',
    '\\',
    '\0',
    '%00',
    'outside',
    'precious',
    'a',
    '--',
    '~',
    ' ',
    'C:',
    '…',
  );
  const ids = fc.sample(
    fc.array(parts, { minLength: 1, maxLength: 9 }).map((all) => all.join('')),
    { numRuns: 500, seed: 4 },
  );
  for (const id of ids) {
    const answers = await Promise.all([
      server.call('DELETE', `/v1/models/${encodeURIComponent(id)}`),
      ...['/load', '/delete', '/download'].map((path) => server.call('POST', path, { model: id })),
    ]);
    // 405: a URL has no steps `.` and `..`, so nothing is left to delete.
    for (const { status } of answers) expect([400, 404, 405], id).toContain(status);
  }
  expect(await readdir(server.base)).toEqual(before);
  expect(await readFile(join(outside, 'precious'), 'utf8')).toBe('precious');
}, 60_000);
