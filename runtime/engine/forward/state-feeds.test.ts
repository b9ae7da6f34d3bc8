import { expect, test } from 'vitest';
import { Sequence } from '../cache/sequence.ts';
import { layOutLanes } from './state-feeds.ts';

/** Returns a sequence whose cells follow the given parents. */
function sequenceOf(parents: readonly number[]): Sequence {
  const sequence = new Sequence({ layers: [] }, parents.length);
  for (const parent of parents) sequence.append(0, parent);
  return sequence;
}

test.each([
  { what: 'a prefix is one lane', parents: [-1, 0, 1], start: 0, keep: [2], roots: [-1], rows: [[0, 1, 2]], kept: [0] },
  {
    what: 'branches behind a prefix share its end',
    parents: [-1, 0, 1, 2, 1, 4],
    start: 2,
    keep: [],
    roots: [1],
    rows: [
      [0, 1],
      [2, 3],
    ],
    kept: [],
  },
  {
    what: 'a cell with two followers is in both lanes',
    parents: [-1, 0, 1, 1],
    start: 1,
    keep: [],
    roots: [0],
    rows: [
      [0, 1],
      [0, 2],
    ],
    kept: [],
  },
  {
    what: 'a cell to keep on the way to another ends a lane too',
    parents: [-1, 0, 1, 2],
    start: 1,
    keep: [1, 3],
    roots: [0],
    rows: [[0], [0, 1, 2]],
    kept: [0, 1],
  },
  {
    what: 'each lane has its own root',
    parents: [-1, 0, 0, 1, 2],
    start: 3,
    keep: [4, 3],
    roots: [2, 1],
    rows: [[1], [0]],
    kept: [0, 1],
  },
])('$what', ({ parents, start, keep, roots, rows, kept }) => {
  const lanes = layOutLanes(sequenceOf(parents), start, parents.length, keep);
  expect(lanes.roots).toEqual(roots);
  expect(lanes.lanes.map((lane) => lane.rows)).toEqual(rows);
  expect(lanes.kept).toEqual(kept);
  for (const [row, { lane, step }] of lanes.places.entries()) expect(lanes.lanes[lane]!.rows[step]).toBe(row);
  expect(lanes.places).toHaveLength(parents.length - start);
});
