import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TOY_KV, ToyForward } from '../../../tests/oracle/toy-forward.ts';
import { Engine } from '../engine.ts';
import type { BranchSpec, JobSpec } from '../job-spec.ts';
import type { KvShape } from './kv-shape.ts';
import { SavedPrefixes } from './saved-prefixes.ts';
import { Sequence } from './sequence.ts';

const GREEDY = { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };
const KEY = new Uint8Array(32).fill(7);
const newFolder = () => mkdtemp(join(tmpdir(), 'assay-prefixes-'));

/** Starts an engine as a new process would, and returns a function that answers one job with it. */
function start(
  folder: string,
  { key = KEY, maxBytes = 1 << 24, saved = new SavedPrefixes({ folder, key, maxBytes }, TOY_KV) } = {},
) {
  const forward = new ToyForward();
  const engine = new Engine({ forward, kv: TOY_KV, maxPromptLen: 2000, contextLength: 4000, kvBytes: 1 << 22, saved });
  return async (prefix: number[], more: Partial<JobSpec> = {}) => {
    const branch: BranchSpec = {
      suffix: [5, 6],
      constraint: null,
      sampling: GREEDY,
      maxTokens: 4,
      endTokens: new Set(),
    };
    const branches = [branch, { ...branch, suffix: [9] }];
    const job: JobSpec = { id: 'job', prefix, branches, budget: 100, deadline: 1e15, ...more };
    await engine.restore(job);
    const done = engine.submit(job);
    while (await engine.step());
    await saved.settled();
    engine.checkIntegrity();
    const { cachedTokens, branches: answers } = await done;
    return { cachedTokens, answers };
  };
}

const tokens = (count: number, from = 0) => Array.from({ length: count }, (_, index) => (from + index * 7) % 64);

test('a prefix outlives its engine, bit by bit, within its scope', async () => {
  const folder = await newFolder();
  const first = start(folder);
  const cold = await first(tokens(300));
  const warm = await first(tokens(300));
  expect([cold.cachedTokens, warm.cachedTokens]).toEqual([0, 300]);
  const again = start(folder);
  expect(await again(tokens(300), { cacheScope: 'another' })).toEqual(cold);
  expect(await again(tokens(300))).toEqual(warm);
  expect((await start(folder)([...tokens(200), ...tokens(100, 3)])).cachedTokens).toBe(200);
});

test('saves no short prefixes and none of batch jobs, and replaces the beginning of a longer one', async () => {
  const folder = await newFolder();
  const run = start(folder);
  await run(tokens(100));
  await run(tokens(300, 5), { priority: 'batch' });
  expect(await readdir(folder)).toEqual([]);
  await run(tokens(200));
  const [shorter] = await readdir(folder);
  await run(tokens(400));
  const files = await readdir(folder);
  expect(files).toHaveLength(1);
  expect(files).not.toContain(shorter);
});

test('a prefix that cannot be written is counted, told of once, and leaves nothing', async () => {
  const folder = await newFolder();
  const told: unknown[] = [];
  const failing = { folder, key: KEY, maxBytes: 1 << 24, onFailed: (cause: unknown) => told.push(cause) };
  const saved = new SavedPrefixes(failing, TOY_KV);
  const run = start(folder, { saved });
  await rm(folder, { recursive: true });
  await run(tokens(300));
  await run(tokens(300, 5));
  expect([saved.failures, told.length, String(told[0])]).toEqual([2, 1, expect.stringContaining('ENOENT')]);
  await mkdir(folder);
  await run(tokens(300, 9));
  expect([saved.failures, (await readdir(folder)).length]).toEqual([2, 1]);
});

test.each([
  ['cut', (file: Buffer) => file.subarray(0, file.length - 1)],
  ['changed at the end', (file: Buffer) => file.fill(1, file.length - 40, file.length - 39)],
  ['changed in its description', (file: Buffer) => file.fill(1, 40, 41)],
  ['of another length', (file: Buffer) => file.fill(255, 16, 20)],
  ['empty', (file: Buffer) => file.subarray(0, 0)],
])('deletes a file that is %s, and answers as without it', async (_, damage) => {
  const folder = await newFolder();
  const cold = await start(folder)(tokens(300));
  const [name = ''] = await readdir(folder);
  await writeFile(join(folder, name), damage(await readFile(join(folder, name))));
  await writeFile(join(folder, `${name}.partial`), 'x');
  expect(await start(folder)(tokens(300))).toEqual(cold);
  const files = await readdir(folder);
  expect(files).toHaveLength(1);
  expect(files).not.toContain(name);
});

test('reads no file of another key', async () => {
  const folder = await newFolder();
  const cold = await start(folder)(tokens(300));
  expect(await start(folder, { key: new Uint8Array(32) })(tokens(300))).toEqual(cold);
});

test('deletes the least recently used prefixes beyond its bytes', async () => {
  const folder = await newFolder();
  await start(folder)(tokens(300));
  const [name = ''] = await readdir(folder);
  const { length } = await readFile(join(folder, name));
  const run = start(folder, { maxBytes: 2.5 * length });
  for (const from of [1, 2, 3]) await run(tokens(300, from));
  expect(await readdir(folder)).toHaveLength(2);
  const later = start(folder);
  expect((await later(tokens(300, 3))).cachedTokens).toBe(300);
  expect((await later(tokens(300))).cachedTokens).toBe(0);
});

test('gives a job that needs exact cells no others', async () => {
  const shape: KvShape = { layers: [{ heads: 1, headSize: 2 }] };
  const options = { folder: await newFolder(), key: KEY, maxBytes: 1 << 24 };
  const sequence = new Sequence(shape, 200);
  for (const token of tokens(200)) sequence.append(token, sequence.length - 1);
  sequence.exactLength = 150;
  const writer = new SavedPrefixes(options, shape);
  writer.save(sequence, 200);
  await writer.settled();
  const reader = new SavedPrefixes(options, shape);
  const read = (cached: number, exact: boolean) =>
    reader.read(tokens(200), '', { cached, exact, blank: (cells) => new Sequence(shape, cells) });
  expect(await read(100, true)).toBeNull();
  for (const found of [await read(100, false), await read(80, true)]) {
    expect(found?.matchLength(tokens(200))).toBe(200);
    expect(found?.matchLength(tokens(200), true)).toBe(150);
  }
});

test('keeps the states of recurrent layers, and continues only after one', async () => {
  const shape: KvShape = { layers: [{ heads: 2, headSize: 3 }], half: true, states: [4, 2] };
  const folder = await newFolder();
  const options = { folder, key: KEY, maxBytes: 1 << 24 };
  const sequence = new Sequence(shape, 256);
  for (const token of tokens(200)) sequence.append(token, sequence.length - 1);
  for (const { key, value } of sequence.layers)
    for (const buffer of [key, value]) for (let i = 0; i < buffer.length; i++) buffer[i] = i % 999;
  const states = {
    rows: 2,
    tensors: [Float32Array.from({ length: 8 }, (_, i) => i / 3), new Float32Array([1, 2, 3, 4])],
  };
  sequence.snapshots.set(149, { states, row: 1 });
  const writer = new SavedPrefixes(options, shape);
  writer.save(sequence, 200);
  await writer.settled();
  const reader = new SavedPrefixes(options, shape);
  const blank = (cells: number) => new Sequence(shape, cells + 7);
  expect(await reader.read(tokens(149), '', { cached: 0, exact: false, blank })).toBeNull();
  const read = await reader.read(tokens(180), '', { cached: 0, exact: false, blank });
  expect(read?.length).toBe(150);
  expect(read?.matchLength(tokens(180))).toBe(150);
  read?.checkIntegrity();
  const found = read?.snapshots.at(149);
  expect(found?.states.tensors.map((tensor) => [...tensor])).toEqual([[...states.tensors[0]!.subarray(4)], [3, 4]]);
  const [from, to] = [sequence.layers[0]!, read!.layers[0]!];
  for (const part of ['key', 'value'] as const) {
    const second = (buffer: ArrayLike<number>, capacity: number) =>
      Array.from(buffer).slice(capacity * 3, capacity * 3 + 450);
    expect(second(to[part], 157)).toEqual(second(from[part], 256));
  }
});
