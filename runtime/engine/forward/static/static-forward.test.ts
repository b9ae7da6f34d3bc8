import { expect, test } from 'vitest';
import { Sequence } from '../../cache/sequence.ts';
import { planRuns, writeStaticMask } from './static-forward.ts';

const SIZES = [4, 16].flatMap((chunk) => [8, 32].map((past) => ({ chunk, past })));

/**
 * Returns a sequence with a trunk of `trunk` tokens, and after it branches of the given lengths, whose tokens were
 * appended in turns.
 */
function sequenceOf(trunk: number, branches: readonly number[], capacity = 64): Sequence {
  const sequence = new Sequence({ layers: [{ heads: 1, headSize: 1 }] }, capacity);
  for (let cell = 0; cell < trunk; cell++) sequence.append(cell, cell - 1);
  const last = branches.map(() => trunk - 1);
  for (let turn = 0; turn < Math.max(0, ...branches); turn++) {
    for (const [branch, length] of branches.entries()) {
      if (turn < length) last[branch] = sequence.append(100 * branch + turn, last[branch]!);
    }
  }
  return sequence;
}

test.each<[name: string, trunk: number, branches: number[], start: number, capacity: number, expected: string[]]>([
  ['a short prompt', 3, [], 0, 64, ['0-3 in 4 behind 0 of 8']],
  [
    'a few more than the small size: small runs',
    10,
    [],
    0,
    64,
    ['0-4 in 4 behind 0 of 8', '4-8 in 4 behind 4 of 8', '8-10 in 4 behind 8 of 8'],
  ],
  [
    'a long prompt: large runs',
    40,
    [],
    0,
    64,
    [
      '0-16 in 16 behind 0 of 8',
      '16-32 in 16 behind 16 of 32',
      '32-36 in 4 behind 32 of 32',
      '36-40 in 4 behind 36 of none',
    ],
  ],
  ['buffers of a size that there is: no copy', 20, [], 16, 32, ['16-20 in 4 behind all of 32']],
  ['a step of branches', 6, [3, 3], 10, 64, ['10-12 in 4 behind 10 of 32']],
  ['a branch alone sees its own cells', 6, [4, 1], 9, 64, ['9-11 in 4 behind 8 of 8']],
])('%s', (_, trunk, branches, start, capacity, expected) => {
  const sequence = sequenceOf(trunk, branches, capacity);
  const described = () =>
    planRuns(sequence, start, SIZES).map(
      ({ first, end, chunk, past, pastCells }) =>
        `${first}-${end} in ${chunk} behind ${pastCells?.length ?? 'all'} of ${past}`,
    );
  if (expected.at(-1)?.endsWith('none')) expect(described).toThrow('cell 36 sees 36 cells');
  else expect(described()).toEqual(expected);
});

test('a run whose branches see too many cells together is halved', () => {
  const sequence = sequenceOf(4, [20, 20]);
  const runs = planRuns(sequence, 40, SIZES);
  expect(runs.map(({ first, end }) => [first, end])).toEqual([
    [40, 41],
    [41, 42],
    [42, 43],
    [43, 44],
  ]);
});

test.each<[window: number | null, capacity: number, expected: string[]]>([
  // The trunk has three tokens, the branches two and one; only the branches are new. Columns 0 to 7 are the past cells,
  // of which three are used; the columns of the new cells follow.
  [null, 64, ['xxx.....x...', 'xxx......x..', 'xxx.....x.x.', '...........x']],
  [2, 64, ['..x.....x...', '..x......x..', '........x.x.', '...........x']],
  // The buffers are used as they are, so they also contain the new cells, which the mask hides there.
  [null, 8, ['xxx.....x...', 'xxx......x..', 'xxx.....x.x.', '...........x']],
])('the mask with a window of %j, buffers of %i', (window, capacity, expected) => {
  const sequence = sequenceOf(3, [2, 1], capacity);
  const [run] = planRuns(sequence, 3, SIZES);
  const mask = new Float32Array(4 * 12);
  writeStaticMask(mask, sequence, run!, window);
  const rows = Array.from({ length: 4 }, (_, row) => [...mask.subarray(row * 12, (row + 1) * 12)]);
  expect(rows.map((row) => row.map((value) => (value === 0 ? 'x' : '.')).join(''))).toEqual(expected);
});
