import { expect, it } from 'vitest';
import { Sequence } from './cache/sequence.ts';
import { keepReplayed, planReplay } from './job.ts';

/**
 * Returns a sequence with the tokens 10 to 13, a second branch (20, 21) after the first token, and a snapshot after the
 * first token.
 */
function sequence(): Sequence {
  const made = new Sequence({ layers: [], states: [1] }, 16);
  for (const [token, parent] of [
    [10, -1],
    [11, 0],
    [12, 1],
    [13, 2],
    [20, 0],
    [21, 4],
  ] as const)
    made.append(token, parent);
  made.snapshots.set(0, snapshot(0));
  return made;
}

const snapshot = (row: number) => ({ states: { rows: 1, tensors: [Float32Array.of(row)] }, row: 0 });

it('copies the cells since the last snapshot, once for each cell that is continued', () => {
  const replayed = sequence();
  let reserved = 0;
  const plan = planReplay(replayed, [3, 5, 3], (cells) => {
    reserved = cells;
  });
  expect(plan).toEqual({ start: 6, rows: [], keep: [8, 10], replayed: [3, 5] });
  expect(reserved).toBe(11);
  expect([...replayed.tokens.subarray(6, 11)]).toEqual([11, 12, 13, 20, 21]);
  expect([...replayed.parents.subarray(6, 11)]).toEqual([0, 6, 7, 0, 9]);
});

it('begins at the first token where no cell has a snapshot', () => {
  const replayed = sequence();
  replayed.snapshots.truncate(0);
  expect(planReplay(replayed, [1], () => {})).toMatchObject({ keep: [7] });
  expect([...replayed.parents.subarray(6, 8)]).toEqual([-1, 6]);
});

it('plans nothing where each cell has a snapshot', () => {
  expect(planReplay(sequence(), [0], () => {})).toBeNull();
});

it('moves the new snapshots to the original cells, and removes the copies', () => {
  const replayed = sequence();
  const plan = planReplay(replayed, [3, 5], () => {})!;
  expect(() => keepReplayed(replayed, plan, [3, 5])).toThrow('stored no states of cell 3');
  const [first, second] = [snapshot(1), snapshot(2)];
  replayed.snapshots.set(8, first);
  replayed.snapshots.set(10, second);
  keepReplayed(replayed, plan, [3, 5]);
  expect(replayed.length).toBe(6);
  expect(replayed.snapshots.at(3)).toBe(first);
  expect(replayed.snapshots.at(5)).toBe(second);
  replayed.checkIntegrity();
});
