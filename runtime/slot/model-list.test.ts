import { mkdtempSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { ModelStatus } from '../../lib/backend.ts';
import type { SlotState } from '../../lib/host.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { LocalModel } from '../store/hub-cache.ts';
import { StorePaths } from '../store/paths.ts';
import { ModelList, type ModelListOptions } from './model-list.ts';

const id = parseModelId('someone/model');
const base = mkdtempSync(join(tmpdir(), 'model-list-'));
const paths = new StorePaths({ hubCache: join(base, 'hub'), assayHome: join(base, 'home'), bundled: null });

interface Case {
  slot?: SlotState;
  download?: 'downloading' | 'compiling';
}

it.each<[string, Case, ModelStatus]>([
  ['a model in memory', { slot: 'loaded' }, 'active'],
  ['a model in the slot that is downloaded again', { slot: 'unloading', download: 'downloading' }, 'unloading'],
  ['a model whose load failed', { slot: 'error' }, 'error'],
  ['a download', { download: 'downloading' }, 'downloading'],
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
  const list = new ModelList({
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

function listOf(given: Case) {
  return new ModelList(listOptions(given)).models();
}

function listOptions({ slot = 'unloaded', download }: Case): ModelListOptions {
  const held = {
    view: () => ({ state: slot, model: id, device: 'CPU' as const }),
    compiled: null,
    info: null,
    work: null,
    isReading: false,
  };
  return {
    slots: new Map(slot === 'unloaded' ? [] : [[id, held]]),
    downloads: { models: download ? [id] : [], statusOf: () => download },
    calibrations: { find: async () => null },
    // Only `paths` is read for models that have no files.
    compile: { paths } as ModelListOptions['compile'],
    find: async () => null,
  };
}
