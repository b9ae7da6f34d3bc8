import type { Sequence } from './sequence.ts';

/** How the new cells of a run follow each other, path by path, for layers that keep a state (`onnx/pack-states.ts`). */
export interface Lanes {
  /** Cells before the run that lanes begin behind; -1: the beginning. Each once. */
  roots: number[];
  /** For each lane: its index in `roots`, and its cells in line, as rows of the run. */
  lanes: { root: number; rows: number[] }[];
  /** For each row of the run, a lane that holds it and where. */
  slots: { lane: number; step: number }[];
  /** The lane that ends at each cell of `keep`. */
  kept: number[];
}

/**
 * Lays out the cells from `start` to `length` in lanes: one to each cell that no other new cell follows, and one to
 * each cell of `keep`. A cell
 * with several followers is in a lane for each of them; its states come out the same in all.
 */
export function layOutLanes(sequence: Sequence, start: number, length: number, keep: readonly number[]): Lanes {
  const { parents } = sequence;
  const followed = new Set<number>();
  for (let cell = start; cell < length; cell++) followed.add(parents[cell]!);
  const ends = new Set(keep);
  for (let cell = start; cell < length; cell++) if (!followed.has(cell)) ends.add(cell);

  const roots: number[] = [];
  const slots: Lanes['slots'] = [];
  const laneAt = new Map<number, number>();
  const lanes = [...ends].map((end, lane) => {
    const rows: number[] = [];
    let cell = end;
    for (; cell >= start; cell = parents[cell]!) rows.push(cell - start);
    rows.reverse();
    for (const [step, row] of rows.entries()) slots[row] ??= { lane, step };
    if (!roots.includes(cell)) roots.push(cell);
    laneAt.set(end, lane);
    return { root: roots.indexOf(cell), rows };
  });
  return { roots, lanes, slots, kept: keep.map((cell) => laneAt.get(cell)!) };
}
