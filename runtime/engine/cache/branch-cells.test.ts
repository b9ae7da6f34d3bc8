import { expect, test } from 'vitest';
import { at } from '../../../lib/at.ts';
import { BranchCells } from './branch-cells.ts';

const SHAPE = { layers: [{ heads: 2, headSize: 2 }] };

test('branches begin at index 1, and those that go on keep their KV when the buffers grow', () => {
  const cells = new BranchCells(SHAPE, 10, 3, 20);
  expect(cells.length).toBe(64);
  for (const [parent, index] of [
    [9, 1],
    [9, 1],
    [10, 2],
    [9, 1],
    [11, 2],
  ] as const)
    cells.append(parent, index);
  expect([10, 11, 12, 13, 14].map((cell) => [cells.placeOf(cell), cells.indexOf(cell)])).toEqual([
    [0, 1],
    [1, 1],
    [0, 2],
    [2, 1],
    [1, 2],
  ]);
  const key = (cell: number, head: number) =>
    3 * (cells.length * (2 * cells.placeOf(cell) + head) + cells.indexOf(cell));
  for (const cell of [11, 13, 14])
    for (const head of [0, 1]) at(cells.layers, 0).key.set([cell, head, 0], key(cell, head));
  cells.reserve([11, 13], 3, 64);
  expect(cells.length).toBe(128);
  for (const cell of [11, 13, 14])
    for (const head of [0, 1])
      expect([...at(cells.layers, 0).key.subarray(key(cell, head), key(cell, head) + 3)]).toEqual([cell, head, 0]);
  expect(cells.bytes).toBe(3 * 2 * 2 * 128 * 3 * 4);
  // Cell 0 stands for the prefix, in new places too.
  cells.append(9, 1);
  const place = cells.placeOf(15);
  expect(place).toBe(2);
  expect([...at(cells.layers, 0).value.subarray(3 * 128 * 2 * place, 3 * 128 * 2 * place + 3)]).toEqual([0, 0, 1]);
});

test('a new group of branches begins in the first place', () => {
  const cells = new BranchCells(SHAPE, 4, 2, 5);
  cells.append(3, 1);
  cells.append(3, 1);
  expect(() => cells.append(3, 1)).toThrow('room');
  cells.truncate(4);
  cells.append(3, 1);
  expect(cells.placeOf(4)).toBe(0);
});
