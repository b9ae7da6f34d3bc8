import { at } from '../../../lib/at.ts';
import type { Sequence } from '../cache/sequence.ts';

/**
 * Describes the new cells of a run as lanes, for recurrent layers (`onnx/rewrites/pack-states.ts`). A lane is one path
 * of cells that follow each other; a recurrent layer computes each lane as a sequence of its own.
 */
export interface Lanes {
  /**
   * Cells before the run whose states lanes begin with, without duplicates; -1 stands for the state before the first
   * token.
   */
  roots: number[];
  /** Lanes, each with its index in `roots` and its cells in order, as row numbers of the run. */
  lanes: { root: number; rows: number[] }[];
  /** For each row of the run, a lane that contains it and its index in that lane. */
  slots: { lane: number; step: number }[];
  /** For each cell of `keep`, the index of the lane that ends at it. */
  kept: number[];
}

/**
 * Arranges the new cells, from `start` to before `length`, in lanes: one that ends at each cell without a new cell
 * after it, and one that ends at each cell of `keep`. A cell with several followers is in a lane for each of them; its
 * states are equal in all.
 */
export function layOutLanes(sequence: Sequence, start: number, length: number, keep: readonly number[]): Lanes {
  const { parents } = sequence;
  const followed = new Set<number>();
  for (let cell = start; cell < length; cell++) followed.add(at(parents, cell));
  const ends = new Set(keep);
  for (let cell = start; cell < length; cell++) if (!followed.has(cell)) ends.add(cell);

  const roots: number[] = [];
  const slots: Lanes['slots'] = [];
  const ordered = [...ends];
  const lanes = ordered.map((end, lane) => {
    const rows: number[] = [];
    let cell = end;
    for (; cell >= start; cell = at(parents, cell)) rows.push(cell - start);
    rows.reverse();
    for (const [step, row] of rows.entries()) slots[row] ??= { lane, step };
    if (!roots.includes(cell)) roots.push(cell);
    return { root: roots.indexOf(cell), rows };
  });
  return { roots, lanes, slots, kept: keep.map((cell) => ordered.indexOf(cell)) };
}
