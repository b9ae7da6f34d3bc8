import { expect, test } from 'vitest';
import { gatherSnapshotRows, Snapshots, snapshotBytes } from './snapshots.ts';

function snapshotsAt(cells: readonly number[]): Snapshots {
  const snapshots = new Snapshots([2]);
  for (const cell of cells) snapshots.set(cell, { states: { rows: 1, tensors: [Float32Array.of(cell, 0)] }, row: 0 });
  return snapshots;
}

test('a sequence continues only after a cell with a snapshot', () => {
  const snapshots = snapshotsAt([9, 19]);
  expect([5, 10, 15, 20, 30].map((length) => snapshots.resumableLength(length))).toEqual([0, 10, 10, 20, 20]);
  snapshots.truncate(19);
  expect(snapshots.resumableLength(30)).toBe(10);
});

test('a model without states continues after any cell', () => {
  expect(new Snapshots([]).resumableLength(7)).toBe(7);
});

test.each([
  { cells: [], kept: [] },
  { cells: [255], kept: [255] },
  { cells: [255, 511, 767, 1023], kept: [255, 511, 1023] },
  { cells: Array.from({ length: 16 }, (_, chunk) => 256 * (chunk + 1) - 1), kept: [511, 1023, 2047, 4095] },
])('of a prefix the end is kept, and what is near a half, a quarter and an eighth: $kept', ({ cells, kept }) => {
  expect([...snapshotsAt(cells).worthKeeping(5000)].sort((a, b) => a - b)).toEqual(kept);
});

test('rows are gathered into memory of their own; before the first token states are zero', () => {
  const states = { rows: 2, tensors: [Float32Array.of(1, 2, 3, 4)] };
  const gathered = gatherSnapshotRows([2], [{ states, row: 1 }, null]);
  expect([...gathered.tensors[0]!]).toEqual([3, 4, 0, 0]);
  expect(snapshotBytes([2, 3])).toBe(20);
});
