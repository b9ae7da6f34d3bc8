import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { type Json, newBase, processTree, type ServerProcess, startServer } from './server.ts';

/* Several models in memory, against real server processes with real (tiny) models (docs/registry.md). */

const QWEN = 'acme/qwen3';
const LLAMA = 'acme/llama';
/** Kills; ASSAY_PROPERTY_RUNS sets more. */
const KILLS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 3);
let hub: HubServer;
let base: string;
let server: ServerProcess | undefined;

beforeAll(async () => {
  base = await newBase();
  hub = await HubServer.start(await fixtureModel('optimum/qwen3', QWEN), await fixtureModel('genai/llama', LLAMA));
  const first = await startServer(hub, base);
  for (const model of [QWEN, LLAMA]) await first.call('POST', '/download', { model });
  await first.stop();
});
afterEach(async () => {
  await server?.stop();
});
afterAll(() => hub.stop());

async function start(...flags: string[]): Promise<ServerProcess> {
  server = await startServer(hub, base, ['--no-load', ...flags]);
  return server;
}

const chat = ({ call }: ServerProcess, body: Json = {}) =>
  call('POST', '/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4, ...body });
const inMemory = async ({ health }: ServerProcess) =>
  ((await health()).models ?? []).map(({ id, state }: Json) => `${id} ${state}`);

/** Returns the process of a model's engine: the `n`th in the order in which they were started. */
async function engines(server: ServerProcess): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await processTree(server.pid)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (/node\0(?:.*\0)?[^\0]*engine-child/su.test(command) && !command.startsWith('bwrap')) found.push(pid);
  }
  return found;
}

it('two models answer at once; a request names its model, and without a name the last one answers', async () => {
  const box = await start('--memory', '8GB');
  await box.call('POST', '/load', { model: QWEN });
  await box.call('POST', '/load', { model: LLAMA });
  expect(await box.health()).toMatchObject({
    status: 'ok',
    state: 'loaded',
    active_model: LLAMA,
    memory_limit_bytes: 8e9,
    models: [
      { id: LLAMA, state: 'loaded', status: 'ok', device: 'CPU', memory_bytes: expect.any(Number) },
      { id: QWEN, state: 'loaded' },
    ],
  });
  const answers = await Promise.all([QWEN, LLAMA, undefined].map((model) => chat(box, { model })));
  expect(answers.map(({ body }) => body.model)).toEqual([QWEN, LLAMA, LLAMA]);
  expect(
    (await box.call('GET', '/v1/models')).body.data.filter(({ status }: Json) => status === 'active'),
  ).toHaveLength(2);
  expect(await box.call('POST', '/unload', { model: QWEN })).toMatchObject({ status: 200, body: { model: QWEN } });
  expect((await chat(box, { model: QWEN })).status).toBe(409);
  expect((await chat(box)).body.model).toBe(LLAMA);
  expect(await box.call('POST', '/unload')).toMatchObject({ body: { model: LLAMA } });
  expect(await box.health()).toMatchObject({ state: 'unloaded', active_model: 'none', models: [] });
});

it('a load may keep the others, or replace them', async () => {
  const box = await start();
  await box.call('POST', '/load', { model: QWEN });
  await box.call('POST', '/load', { model: LLAMA, keep_others: true });
  expect(await inMemory(box)).toEqual([`${LLAMA} loaded`, `${QWEN} loaded`]);
  const again = await box.call('POST', '/load', { model: QWEN, keep_others: true });
  expect(again).toMatchObject({ status: 200, body: { load_ms: 0 } });
  expect(await inMemory(box)).toEqual([`${QWEN} loaded`, `${LLAMA} loaded`]);
  expect((await chat(box)).body.model).toBe(QWEN);
  expect(await box.call('POST', '/load', { model: LLAMA })).toMatchObject({ status: 200, body: { load_ms: 0 } });
  expect(await box.health()).toMatchObject({ active_model: LLAMA });
  expect((await chat(box, { model: QWEN })).status).toBe(409);
  await box.call('POST', '/load', { model: QWEN, max_prompt_len: 64 });
  expect(await box.health()).toMatchObject({ active_model: QWEN, max_prompt_len: 64 });
  expect(await box.health()).not.toHaveProperty('models');
  expect((await chat(box, { model: LLAMA })).status).toBe(409);
});

it('a load that does not fit is refused with the sums, or unloads what was used least recently', async () => {
  const box = await start('--memory', '500MB');
  await box.call('POST', '/load', { model: QWEN });
  const refused = await box.call('POST', '/load', { model: LLAMA });
  expect(refused).toMatchObject({ status: 507, body: { error: { code: 'memory_full' } } });
  expect(refused.body.error.message).toMatch(
    /^acme\/llama needs about \d+ MB, and models may have 500 MB, of which are taken: acme\/qwen3 \d+ MB\. /,
  );
  expect(await inMemory(box)).toEqual([`${QWEN} loaded`]);
  expect((await chat(box)).status).toBe(200);
  expect((await box.call('POST', '/load', { model: LLAMA, evict: true })).status).toBe(200);
  expect(await inMemory(box)).toEqual([`${LLAMA} loaded`]);
});

describe('on demand', () => {
  it('the first request for a model loads it; keep_alive unloads it', async () => {
    const box = await start('--load-on-demand');
    const both = await Promise.all([chat(box, { model: QWEN }), chat(box, { model: QWEN })]);
    expect(both.map(({ status, body }) => [status, body.model])).toEqual([
      [200, QWEN],
      [200, QWEN],
    ]);
    expect((await chat(box, { model: LLAMA, keep_alive: 0 })).body.model).toBe(LLAMA);
    await expect.poll(() => inMemory(box)).toEqual([`${QWEN} loaded`]);
    expect((await chat(box, { model: 'acme/none' })).status).toBe(404);
    await box.call('POST', '/unload');
    // Without a name, the model that was loaded last is meant.
    expect((await chat(box)).body.model).toBe(LLAMA);
  });

  it('one model is loaded at a time; a request for another one is told when to come back', async () => {
    const box = await start('--load-on-demand');
    const first = chat(box, { model: QWEN });
    await expect.poll(async () => (await box.health()).state, { interval: 5 }).toBe('loading');
    const other = await fetch(`${box.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: LLAMA, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect({ status: other.status, code: ((await other.json()) as Json).error.code }).toEqual({
      status: 429,
      code: 'overloaded',
    });
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await first).status).toBe(200);
    expect((await chat(box, { model: LLAMA })).body.model).toBe(LLAMA);
  });

  it('is off by default', async () => {
    const box = await start('--memory', '8GB');
    expect((await chat(box, { model: QWEN })).status).toBe(409);
    await box.call('POST', '/load', { model: QWEN });
    for (const keep_alive of [0, 0, 0]) expect((await chat(box, { keep_alive })).status).toBe(200);
  });
});

it.runIf(process.platform === 'linux')(
  `${KILLS} kills of one model under load cost the other no request`,
  async () => {
    const box = await start('--memory', '8GB');
    await box.call('POST', '/load', { model: QWEN });
    const [doomed] = await engines(box);
    await box.call('POST', '/load', { model: LLAMA });
    const spared = (await engines(box)).filter((pid) => pid !== doomed);
    let killing = true;
    const statuses: Record<string, number[]> = { [QWEN]: [], [LLAMA]: [] };
    const load = [QWEN, LLAMA, QWEN, LLAMA].map(async (model) => {
      while (killing) statuses[model]?.push((await chat(box, { model })).status);
    });
    for (let kills = 0; kills < KILLS; ) {
      const before = statuses[QWEN]?.filter((status) => status === 200).length ?? 0;
      const [pid] = (await engines(box)).filter((one) => !spared.includes(one));
      if (pid === undefined) continue;
      process.kill(pid, 'SIGKILL');
      kills += 1;
      // The killed model answers again before it is killed again.
      await expect
        .poll(() => statuses[QWEN]?.filter((one) => one === 200).length, { timeout: 20_000 })
        .toBeGreaterThan(before);
    }
    killing = false;
    await Promise.all(load);
    expect(new Set(statuses[LLAMA])).toEqual(new Set([200]));
    expect(statuses[LLAMA]?.length).toBeGreaterThan(KILLS);
    expect((await engines(box)).filter((pid) => spared.includes(pid))).toEqual(spared);
  },
  60_000 + KILLS * 5_000,
);
