import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ModelStatus } from '../../lib/backend.ts';
import type { SlotState } from '../../lib/host.ts';
import { parseModelId } from '../../lib/model-id.ts';
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

function listOf({ slot = 'unloaded', download }: Case) {
  const model = slot === 'unloaded' ? null : id;
  const list = new ModelList({
    slot: {
      view: () => ({ state: slot, model, device: 'CPU' }),
      compiled: null,
      uses: () => false,
      isReading: () => false,
    },
    downloads: { models: download ? [id] : [], statusOf: () => download },
    calibrations: { find: async () => null },
    // Only `paths` is read for models that have no files.
    compile: { paths } as ModelListOptions['compile'],
    find: async () => null,
  });
  return list.models();
}
