import { mkdtempSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as tick } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it, test } from 'vitest';
import type { ModelStatus } from '../../lib/backend.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { ModelState } from '../../lib/models/model-states.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import type { LocalModel } from '../store/hub-cache.ts';
import { StorePaths } from '../store/paths.ts';
import { LocalModelList, type ModelListOptions, oneRunAtATime } from './model-list.ts';
import { ModelRegistry } from './model-registry.ts';

const id = parseModelId('someone/model');
const base = mkdtempSync(join(tmpdir(), 'model-list-'));
const paths = new StorePaths({ hubCache: join(base, 'hub'), assayHome: join(base, 'home'), bundled: null });

interface Case {
  state?: ModelState;
  download?: 'downloading' | 'verifying' | 'compiling';
}

it.each<[string, Case, ModelStatus]>([
  ['a model in memory', { state: 'loaded' }, 'active'],
  ['a model in memory that is downloaded again', { state: 'unloading', download: 'downloading' }, 'unloading'],
  ['a model whose load failed', { state: 'failed' }, 'error'],
  ['a download', { download: 'downloading' }, 'downloading'],
  ['a download that is verified', { download: 'verifying' }, 'downloading'],
  ['a download that compiles', { download: 'compiling' }, 'compiling'],
])('lists %s', async (_, given, status) => {
  expect(await listOf(given)).toEqual([{ id, status }]);
});

it('lists nothing on a new machine', async () => {
  expect(await listOf({})).toEqual([]);
});

it('lists the other models where one cannot be read', async () => {
  const cache = new StorePaths({ ...paths.roots, hubCache: join(base, 'unreadable') });
  for (const name of ['one', 'two'])
    await mkdir(cache.repository(parseModelId(`someone/${name}`)), { recursive: true });
  const warned: unknown[] = [];
  const log = pino({}, { write: (line) => warned.push(JSON.parse(line)) });
  const list = new LocalModelList({
    ...listOptions({}),
    compile: {
      paths: cache,
      log,
    } as ModelListOptions['compile'],
    find: async (model) => {
      if (model === 'someone/one') throw new Error('EACCES');
      return { id: model, origin: 'hub', directory: '', commit: '', files: {} as LocalModel['files'], contract: null };
    },
  });
  expect(await list.models()).toMatchObject([{ id: 'someone/two', status: 'downloaded' }]);
  expect(warned).toMatchObject([{ model: 'someone/one' }]);
});

describe('a search of many models', () => {
  const hubCache = join(base, 'many');
  const model = parseModelId('someone/m7');

  /** Lists a store of `count` models three times; returns how many models were searched each time. */
  async function searched(count: number, between: { ms?: number; change?: boolean } = {}): Promise<number[]> {
    const cache = new StorePaths({ ...paths.roots, hubCache: `${hubCache}-${count}` });
    for (let i = 0; i < count; i++) await mkdir(cache.repository(parseModelId(`someone/m${i}`)), { recursive: true });
    const options = listOptions({});
    let found = 0;
    let ms = 0;
    const list = new LocalModelList({
      ...options,
      compile: { paths: cache } as ModelListOptions['compile'],
      find: async () => {
        found++;
        ms++;
        return null;
      },
      now: () => ms,
    });
    const counts: number[] = [];
    for (let time = 0; time < 3; time++) {
      const before = found;
      await list.models();
      counts.push(found - before);
      if (time === 1) ms += between.ms ?? 0;
      if (time === 1 && between.change) (options.registry as ModelRegistry<Held>).apply(model, 'download');
    }
    return counts;
  }

  test.each([
    ['of few models is repeated', 200, {}, [200, 200, 200]],
    ['of many is used again', 201, {}, [201, 0, 0]],
    ['is repeated after a while', 201, { ms: 201 * 20 }, [201, 0, 201]],
    ['is repeated after a change', 201, { change: true }, [201, 0, 201]],
  ])('%s', async (_, count, between, expected) => {
    expect(await searched(count, between)).toEqual(expected);
  });
});

type Held = ModelListOptions['registry']['hosted'] extends Map<unknown, infer One> ? One : never;

function listOf(given: Case) {
  return new LocalModelList(listOptions(given)).models();
}

function listOptions(
  { state = 'unloaded', download }: Case,
  compiled: Held['compiled'] = null,
  info: Held['info'] = null,
): ModelListOptions {
  const held: Held = {
    state,
    compiled,
    info,
    work: null,
    isReading: false,
    inUse: false,
  };
  const registry = new ModelRegistry<Held>();
  if (state !== 'unloaded') registry.hosted.set(id, held);
  if (download) {
    registry.apply(id, 'download');
    registry.apply(id, download);
  }
  return {
    registry,
    calibrations: { find: async () => null },
    // Only `paths` is read for models that have no files.
    compile: { paths } as ModelListOptions['compile'],
    find: async () => null,
  };
}

describe('thresholds are those of the loaded files, number format and wording', () => {
  const calibration = { version: 1, fingerprint: 'ab'.repeat(32), model: id, fitted: '2026-11-28', kinds: {} } as const;
  const listed = (precision: string, fingerprint = '', contract?: ModelContract) => {
    const record = { fingerprint: { source: 'ab'.repeat(32) }, precision };
    const thresholds = { method: 'ltt-fixed-sequence' as const, confidence: 0.95, fingerprint, orders: 1, targets: [] };
    return new LocalModelList({
      ...listOptions({ state: 'loaded' }, { record } as never, contract ? ({ contract } as never) : null),
      calibrations: { find: async () => ({ from: 'own', calibration: { ...calibration, thresholds } }) },
    });
  };

  test('others are void', async () => {
    const [int8] = await listed('int8').models();
    const own = int8?.policy_fingerprint ?? '';
    expect(own).toMatch(/^[0-9a-f]{64}$/);
    expect(int8?.calibration).not.toHaveProperty('thresholds');
    const valid = listed('int8', own);
    expect((await valid.models())[0]?.calibration).toHaveProperty('thresholds.fingerprint', own);
    expect((await valid.calibration(id))?.calibration).toHaveProperty('thresholds');
    const other = listed('int4', own);
    expect((await other.models())[0]?.calibration).not.toHaveProperty('thresholds');
    expect((await other.calibration(id))?.calibration).not.toHaveProperty('thresholds');
    const asked = listed('int8', own, { name: 'kev', version: '1', temperature: 'none' });
    expect((await asked.calibration(id))?.calibration).not.toHaveProperty('thresholds');
  });
});

/** Creates a wrapped operation whose runs the test ends. */
function controlled() {
  const runs: { end(value: string): void; fail(error: Error): void }[] = [];
  const call = oneRunAtATime(() => new Promise<string>((end, fail) => runs.push({ end, fail })));
  return { runs, call };
}

test('callers during a run share the next one', async () => {
  const { runs, call } = controlled();
  const [first, second, third] = [call(), call(), call()];
  expect(runs).toHaveLength(1);
  runs[0]?.end('a');
  expect(await first).toBe('a');
  await tick();
  expect(runs).toHaveLength(2);
  const fourth = call();
  runs[1]?.end('b');
  expect(await Promise.all([second, third])).toEqual(['b', 'b']);
  await tick();
  runs[2]?.end('c');
  expect(await fourth).toBe('c');
  expect(runs).toHaveLength(3);
});

test('a failed run fails only its own callers', async () => {
  const { runs, call } = controlled();
  const [first, second] = [call(), call()];
  runs[0]?.fail(new Error('no'));
  await expect(first).rejects.toThrow('no');
  await tick();
  runs[1]?.end('b');
  expect(await second).toBe('b');
});

test('a call after the end starts a run at once', async () => {
  const { runs, call } = controlled();
  const first = call();
  runs[0]?.end('a');
  await first;
  await tick();
  void call();
  expect(runs).toHaveLength(2);
});
