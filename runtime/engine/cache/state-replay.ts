import { at } from '../../../lib/at.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Plan } from '../scheduler/plan.ts';
import type { Sequence } from './sequence.ts';

/**
 * Plans a run that recomputes the recurrent states after the cells that branches continue from, where the sequence has
 * no snapshot of them. Scoring options stores no snapshots, because few options are continued. Appends copies of the
 * cells since the last snapshot to the sequence for this run; `keepReplayed` removes them. Returns null if no snapshot
 * is missing.
 *
 * @param heads cells that branches continue from
 * @param reserve grows the sequence to this number of cells in all
 */
export function planReplay(sequence: Sequence, heads: Iterable<number>, reserve: (cells: number) => void): Plan | null {
  const { snapshots } = sequence;
  const replayed = [...new Set(heads)].filter((cell) => !snapshots.at(cell));
  if (replayed.length === 0) return null;
  const paths = replayed.map((end) => {
    const path: number[] = [];
    let cell = end;
    for (; cell >= 0 && !snapshots.at(cell); cell = at(sequence.parents, cell)) path.push(cell);
    return { root: cell, path: path.reverse() };
  });
  const start = sequence.length;
  reserve(paths.reduce((sum, { path }) => sum + path.length, start));
  const keep = paths.map(({ root, path }) =>
    path.reduce((parent, cell) => sequence.append(at(sequence.tokens, cell), parent), root),
  );
  return { start, rows: [], keep, replayed };
}

/**
 * Stores the states of a replay as snapshots of the original cells, and removes the copies from the sequence. Throws
 * `internal_error` if the run stored no states for one of them.
 *
 * @param replayed original cells (`Plan.replayed`)
 */
export function keepReplayed(sequence: Sequence, { start, keep }: Plan, replayed: readonly number[]): void {
  for (const [index, cell] of replayed.entries()) {
    const snapshot = sequence.snapshots.at(at(keep, index));
    if (!snapshot)
      throw new AssayError(
        'internal_error',
        `The run stored no states of cell ${cell}. Search the log for the request id.`,
      );
    sequence.snapshots.set(cell, snapshot);
  }
  sequence.truncate(start);
}
