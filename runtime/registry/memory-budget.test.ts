import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelState } from '../../lib/models/model-states.ts';
import { MemoryBudget } from './memory-budget.ts';

const MB = 1e6;
const folder = mkdtempSync(join(tmpdir(), 'assay-budget-'));
afterAll(() => rmSync(folder, { recursive: true }));
// Weights of 238 MB, beside what the process itself needs: together 500 MB.
const weights = join(folder, 'weights.bin');
writeFileSync(weights, '');
truncateSync(weights, 500 * MB - 250 * 2 ** 20);

const held = (name: string, state: ModelState, usedAt = 0, megabytes = 500, admitted = 0) => ({
  model: `test/${name}` as ModelId,
  state,
  usedAt,
  engine: { status: () => ({ rssBytes: megabytes * MB, admitted }) } as never,
});
const loading = held('new', 'loading', 0, 0);

it.each([
  ['alone', 600, false, [], []],
  ['beside one that is small', 800, false, [held('small', 'loaded', 0, 300)], []],
  ['beside one that failed', 600, false, [held('failed', 'failed')], []],
  ['where the oldest is unloaded', 1_100, true, [held('new', 'loaded', 2), held('old', 'loaded', 1)], ['test/old']],
  [
    'where an idle one goes before one that answers',
    1_100,
    true,
    [held('busy', 'loaded', 1, 500, 1), held('idle', 'loaded', 2)],
    ['test/idle'],
  ],
  ['where two are unloaded', 600, true, [held('a', 'loaded', 2), held('b', 'restarting', 1)], ['test/b', 'test/a']],
])('reserves memory for a model %s', async (_, megabytes, evict, others, unloaded) => {
  const gone: string[] = [];
  const budget = new MemoryBudget({ budgetBytes: megabytes * MB, evict }, async (model) => void gone.push(model));
  await budget.reserve(loading, folder, others);
  expect(gone).toEqual(unloaded);
  expect(budget.bytesOf(loading)).toBe(500 * MB);
});

it.each([
  ['more than there is', 400, [], /^test\/new needs about 500 MB, and models may have 400 MB\. Give the models more/],
  ['what others have', 900, [held('other', 'loaded')], /of which are taken: test\/other 500 MB\. Unload one/],
  ['what one that is being loaded has', 900, [held('other', 'loading')], /test\/other 500 MB/],
])('refuses a model that needs %s, and unloads none', async (_, megabytes, others, message) => {
  const unload = () => Promise.reject(new Error('unloaded'));
  const budget = new MemoryBudget({ budgetBytes: megabytes * MB, evict: false }, unload);
  const refused = budget.reserve(
    loading,
    folder,
    others,
    others.some(({ state }) => state === 'loading'),
  );
  await expect(refused).rejects.toMatchObject({ code: 'memory_full', message: expect.stringMatching(message) });
  expect(budget.bytesOf(loading)).toBe(0);
});

it('holds models to no sum without settings', async () => {
  const budget = new MemoryBudget(undefined, async () => undefined);
  await budget.reserve(loading, folder, [held('other', 'loaded', 0, 1e9)]);
});

it('counts a model that another load has reserved memory for', async () => {
  const budget = new MemoryBudget({ budgetBytes: 900 * MB, evict: false }, async () => undefined);
  const first = held('first', 'unloaded', 0, 0);
  await budget.reserve(first, folder, []);
  await expect(budget.reserve(loading, folder, [first])).rejects.toMatchObject({ code: 'memory_full' });
  budget.settle(first.model);
  await budget.reserve(loading, folder, [first]);
});
