import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { type Json, newBase, processTree, type ServerProcess, startServer } from './server.ts';

/* Crossing requests, and a server that dies in the middle, against real server processes (docs/registry.md). */

const QWEN = 'acme/qwen3';
const LLAMA = 'acme/llama';
const toStop: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of toStop.splice(0).reverse()) await one.stop();
});

async function start(base?: string, hub?: HubServer): Promise<{ hub: HubServer; server: ServerProcess; base: string }> {
  const home = base ?? (await newBase());
  const from =
    hub ?? (await HubServer.start(await fixtureModel('optimum/qwen3', QWEN), await fixtureModel('genai/llama', LLAMA)));
  if (!hub) toStop.push(from);
  const server = await startServer(from, home);
  toStop.push(server);
  return { hub: from, server, base: home };
}

const post = (server: ServerProcess, path: string, body?: Json) => server.call('POST', path, body);
const state = async (server: ServerProcess) => (await server.health()).state;
const chat = (server: ServerProcess, body: Json = {}) =>
  post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4, ...body });

/** A list of so many numbers that a random model does not end it early: a slow stream. */
const LONG = {
  type: 'json_schema',
  json_schema: {
    name: 'numbers',
    schema: {
      type: 'object',
      properties: { numbers: { type: 'array', minItems: 200, items: { type: 'integer' } } },
      required: ['numbers'],
      additionalProperties: false,
    },
  },
};

/** Starts a long stream; resolves when its first chunk has arrived. */
async function longStream(server: ServerProcess) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      messages: [{ role: 'user', content: 'Count.' }],
      stream: true,
      response_format: LONG,
      max_tokens: 100,
    }),
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value ?? '';
  const rest = async (): Promise<string> => {
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    return text;
  };
  return { rest: rest() };
}

describe('unload during a stream', { timeout: 60_000 }, () => {
  it('waits until the stream has ended whole; new requests are refused meanwhile', async () => {
    const { server } = await start();
    await post(server, '/download', { model: QWEN });
    await post(server, '/load', { model: QWEN });
    const { rest } = await longStream(server);
    const unload = post(server, '/unload');
    // A short stream may end before a slow caller looks.
    await expect.poll(() => state(server), { interval: 5 }).toMatch(/^unload(ing|ed)$/);
    expect(await chat(server)).toMatchObject({ status: 409, body: { error: { code: 'model_not_loaded' } } });
    // An unload that did not wait would cut the stream with an error. Which answer arrives first is up to the sockets.
    expect(await rest).toMatch(/"metrics"[\s\S]*data: \[DONE\]\n\n$/);
    expect(await unload).toMatchObject({ status: 200, body: { model: QWEN } });
    expect(await state(server)).toBe('unloaded');
  });

  it('and so does loading another model', async () => {
    const { server } = await start();
    for (const model of [QWEN, LLAMA]) await post(server, '/download', { model });
    await post(server, '/load', { model: QWEN });
    const { rest } = await longStream(server);
    const load = post(server, '/load', { model: LLAMA });
    expect(await rest).toContain('data: [DONE]');
    expect(await load).toMatchObject({ status: 200, body: { model: LLAMA } });
    expect((await chat(server)).body.model).toBe(LLAMA);
  });
});

/** Returns the id of the new engine process, stopped as it starts, so that a load takes as long as a test wants. */
async function heldEngine(server: ServerProcess, before: readonly number[]): Promise<number> {
  let engine: number | undefined;
  const find = async () => {
    for (const pid of await processTree(server.pid)) {
      // Not before it runs its own program: the server waits for that, and would be stopped with it.
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (!before.includes(pid) && command.includes('engine-child')) engine = pid;
    }
    return engine;
  };
  await expect.poll(find, { interval: 1 }).toBeDefined();
  process.kill(engine!, 'SIGSTOP');
  return engine!;
}

describe('requests that cross', { timeout: 60_000 }, () => {
  it.runIf(process.platform === 'linux')('delete during load: 409 model_in_use, and the load goes on', async () => {
    const { server } = await start();
    await post(server, '/download', { model: QWEN });
    const before = await processTree(server.pid);
    const load = post(server, '/load', { model: QWEN });
    const engine = await heldEngine(server, before);
    try {
      expect(await state(server)).toBe('loading');
      for (const compiled_only of [true, false]) {
        expect(await post(server, '/delete', { model: QWEN, compiled_only })).toMatchObject({
          status: 409,
          body: { error: { code: 'model_in_use' } },
        });
      }
      expect(await post(server, '/unload')).toMatchObject({
        status: 409,
        body: { error: { code: 'operation_in_progress' } },
      });
    } finally {
      process.kill(engine, 'SIGCONT');
    }
    expect((await load).status).toBe(200);
    expect((await chat(server)).status).toBe(200);
  });

  it('load and delete during a download: 409 with how far it is; nothing is lost', async () => {
    const { server, hub } = await start();
    const faster = hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond: 100_000 } });
    const download = post(server, '/download', { model: QWEN });
    await expect
      .poll(async () => (await post(server, '/load', { model: QWEN })).body.error?.message)
      .toMatch(/being downloaded now \(\d+ %\)/);
    expect(await post(server, '/delete', { model: QWEN })).toMatchObject({
      status: 409,
      body: { error: { code: 'operation_in_progress' } },
    });
    const joined = post(server, '/download', { model: QWEN });
    faster();
    const [first, second] = await Promise.all([download, joined]);
    expect(first).toEqual(second);
    expect((await post(server, '/load', { model: QWEN })).status).toBe(200);
  });

  it('a download goes on when its caller leaves', async () => {
    const { server, hub } = await start();
    hub.fail({ on: 'content', times: 1, fault: { kind: 'throttle', bytesPerSecond: 80_000 } });
    const leaving = new AbortController();
    const call = fetch(`${server.url}/download`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: QWEN }),
      signal: leaving.signal,
    });
    await expect.poll(() => hub.requests.some(({ on }) => on === 'content')).toBe(true);
    leaving.abort();
    await expect(call).rejects.toThrow();
    const statusOf = async () =>
      (await server.call('GET', '/models')).body.data.find((one: Json) => one.id === QWEN)?.status;
    await expect.poll(statusOf).toBe('compiled');
  });
});

describe.runIf(process.platform === 'linux')('kill -9 of the server', { timeout: 60_000 }, () => {
  it.each(['download', 'compile', 'load', 'stream'])(
    'during a %s: its engine ends too, and a new server over the same files is clean',
    async (step) => {
      const { server, hub, base } = await start();
      const slow = hub.fail({
        on: 'content',
        fault: { kind: 'throttle', bytesPerSecond: step === 'download' ? 100_000 : 1e9 },
      });
      const forget = (promise: Promise<unknown>): void => void promise.catch(() => undefined);
      if (step !== 'download' && step !== 'compile') await post(server, '/download', { model: QWEN });
      if (step === 'stream') await post(server, '/load', { model: QWEN });
      if (step === 'download' || step === 'compile') forget(post(server, '/download', { model: QWEN }));
      if (step === 'load') forget(post(server, '/load', { model: QWEN }));
      if (step === 'stream') forget((await longStream(server)).rest);
      // Short steps may be over before a slow caller looks.
      const there: Record<string, () => Promise<boolean>> = {
        download: async () => hub.requests.some(({ on }) => on === 'content'),
        compile: async () =>
          (await server.call('GET', '/models')).body.data.some((one: Json) => /^compil(ing|ed)$/.test(one.status)),
        load: async () => /^load(ing|ed)$/.test(await state(server)),
      };
      await expect.poll(there[step] ?? (async () => true), { interval: 10 }).toBe(true);
      const processes = await processTree(server.pid);
      await server.kill();
      await expect.poll(async () => (await Promise.all(processes.map(alive))).filter(Boolean)).toEqual([]);
      slow();
      const { server: again } = await start(base, hub);
      expect(await state(again)).toBe('unloaded');
      expect((await post(again, '/download', { model: QWEN })).status).toBe(200);
      expect((await post(again, '/load', { model: QWEN })).status).toBe(200);
      expect((await chat(again)).status).toBe(200);
    },
  );

  /** A dead process that nobody has waited for does not count. */
  async function alive(pid: number): Promise<boolean> {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    return stat !== '' && !/^\d+ \(.*\) Z/.test(stat);
  }
});
