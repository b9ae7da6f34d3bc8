import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ModelId } from '../../lib/model-id.ts';
import { type Isolation, NO_ISOLATION, openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
import { MODEL, newCall, startMachine } from './machine.ts';

const auto = await openIsolation('auto');
const active = (name: string) => auto.layers.some((layer) => layer.name === name && layer.active);

const folder = mkdtempSync(join(tmpdir(), 'assay-isolation-'));
const secret = join(folder, 'secret');
const model = join(folder, 'model');
const engines: Supervisor[] = [];
const listener = createServer((socket) => socket.end());

beforeAll(async () => {
  writeFileSync(secret, 'a secret of the user');
  mkdirSync(model);
  writeFileSync(join(model, 'weights'), 'w');
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
});
afterAll(() => void listener.close());
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

const port = () => (listener.address() as { port: number }).port;

/** Starts a process that a hostile model has taken over, lets it try something, and returns how far it got. */
async function attack(isolation: Isolation, what: string, memoryLimitBytes = 2 ** 30): Promise<string> {
  const entry = new URL('./hostile-child.ts', import.meta.url);
  const log = pino({ level: 'silent' });
  const engine = new Supervisor({ log, entry, isolation, memoryLimitBytes, watchMs: 50 });
  engines.push(engine);
  await engine.load({ model: 'test/hostile' as ModelId, dir: model });
  const tasks = [{ type: 'decide' as const, name: 'a', question: what }];
  const batch = {
    model: 'test/hostile',
    input: { context: '' },
    media: [],
    tasks,
    temperature: 0,
    maxOutputTokens: 16,
  };
  const call = await engine.call({ work: { kind: 'tasks', batch }, signal: newCall().signal, timeoutMs: 30_000 });
  await call.prepare();
  try {
    for await (const _ of call.run());
  } catch (error) {
    return (error as Error).message;
  }
  return 'nothing said';
}

const ATTACKS: [what: string, argument: () => string, layer: 'permissions' | 'namespaces'][] = [
  ['read', () => secret, 'permissions'],
  ['write', () => join(folder, 'written'), 'permissions'],
  ['write', () => join(model, 'weights'), 'permissions'],
  ['spawn', () => '', 'permissions'],
  ['connect', () => String(port()), 'namespaces'],
  ['native read', () => secret, 'namespaces'],
  ['native write', () => join(model, 'weights'), 'namespaces'],
  ['native write', () => join(folder, 'written'), 'namespaces'],
  ['native kill', () => String(process.pid), 'namespaces'],
  ['native connect', () => String(port()), 'namespaces'],
];

/** The system calls of native code are those of Linux. */
const here = ATTACKS.filter(([what]) => process.platform === 'linux' || !what.startsWith('native'));

describe.each(here)('%s', (what, argument, layer) => {
  it('succeeds without isolation', async () => {
    expect(await attack(NO_ISOLATION, `${what}: ${argument()}`)).toMatch(/^got: /u);
  });

  it.runIf(active(layer))('is refused with it', async () => {
    expect(await attack(auto, `${what}: ${argument()}`)).toMatch(/^refused: /u);
  });
});

it('what belongs to the model is read all the same', async () => {
  expect(await attack(auto, `read: ${join(model, 'weights')}`)).toMatch(/^got: /u);
  if (process.platform !== 'linux') return;
  expect(await attack(auto, `native read: ${join(model, 'weights')}`)).toMatch(/^got: /u);
});

it('eight gigabytes are not had, and the server goes on', async () => {
  const before = process.memoryUsage.rss();
  expect(await attack(auto, 'memory: 8')).toMatch(/^refused: |The engine process used /u);
  expect(process.memoryUsage.rss() - before).toBeLessThan(256 * 1024 * 1024);
  await expect.poll(() => engines[0]?.status().state).toBe('loaded');
});

it('a real model compiles, loads and answers inside, and says nothing to the log', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const machine = await startMachine('optimum/qwen3', { isolation: auto, log });
  try {
    const tasks = [{ type: 'decide' as const, name: 'a', question: 'Is it?', options: ['yes', 'no'] }];
    const batch = { model: MODEL, input: { context: 'c' }, media: [], tasks, temperature: 0, maxOutputTokens: 16 };
    const { answers } = await machine.backend.runTasks(batch, newCall());
    expect(JSON.parse(answers[0]!.json)).toHaveProperty('value');
    expect(machine.engine.status().rssBytes).toBeGreaterThan(50 * 1024 * 1024);
    expect(lines).toEqual([]);
  } finally {
    await machine.close();
  }
});

describe('modes', () => {
  it('off: no layer', async () => {
    const { layers, launch } = await openIsolation('off');
    expect(layers.map(({ active: on }) => on)).toEqual([false, false, false]);
    const needs = { read: [], write: [], memoryBytes: 1, drivers: false };
    expect(launch(needs, ['--x'])).toEqual({ execPath: process.execPath, execArgv: ['--x'] });
  });

  it('strict: all or nothing', async () => {
    const all = auto.layers.every(({ active: on }) => on);
    if (all) expect((await openIsolation('strict')).layers).toEqual(auto.layers);
    else await expect(openIsolation('strict')).rejects.toMatchObject({ code: 'invalid_value' });
  });

  it('of other devices: their drivers run without limits and namespaces', async () => {
    const { execPath, execArgv } = auto.launch({ read: [], write: [], memoryBytes: 1, drivers: true }, []);
    expect([execPath, ...execArgv].join(' ')).not.toMatch(/bwrap|ulimit/u);
  });
});
