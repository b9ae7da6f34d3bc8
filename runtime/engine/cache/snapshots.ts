import { at } from '../../../lib/at.ts';

/** Holds the recurrent states of several lanes of a run: one tensor `[rows, ...]` for each state of the model. */
export interface StateRows {
  rows: number;
  tensors: readonly Float32Array[];
}

/** Points to the recurrent states of a sequence after one of its cells: row `row` of `states`. */
export interface Snapshot {
  states: StateRows;
  row: number;
}

/** Fractions of a prefix's length near which snapshots are kept, besides the snapshot at its end. */
const KEPT_FRACTIONS = [1 / 2, 1 / 4, 1 / 8];
/** Maximum number of snapshots that are kept of a prefix. */
export const MOST_SNAPSHOTS = KEPT_FRACTIONS.length + 1;

/**
 * Holds the states of recurrent layers after some cells of a sequence. Such a state cannot be rolled back, so a
 * sequence can only continue after a cell that has a snapshot.
 */
export class Snapshots {
  /** Number of floats of each state. */
  readonly #sizes: readonly number[];
  readonly #byCell = new Map<number, Snapshot>();

  constructor(sizes: readonly number[]) {
    this.#sizes = sizes;
  }

  /** True if the model has recurrent layers. */
  get needed(): boolean {
    return this.#sizes.length > 0;
  }

  /** Bytes of all snapshots. A snapshot that several sequences share counts in each of them. */
  get bytes(): number {
    return this.#byCell.size * snapshotBytes(this.#sizes);
  }

  get cells(): Iterable<number> {
    return this.#byCell.keys();
  }

  at(cell: number): Snapshot | undefined {
    return this.#byCell.get(cell);
  }

  set(cell: number, snapshot: Snapshot): void {
    this.#byCell.set(cell, snapshot);
  }

  /**
   * Returns how many of its first `length` cells a sequence can keep and continue after: all of them without recurrent
   * layers, otherwise those up to the last one with a snapshot (0 if none has one).
   */
  resumableLength(length: number): number {
    if (!this.needed) return length;
    let best = 0;
    for (const cell of this.#byCell.keys()) if (cell < length) best = Math.max(best, cell + 1);
    return best;
  }

  /** Deletes the snapshots of all cells from index `length` on. */
  truncate(length: number): void {
    this.keepOnly((cell) => cell < length);
  }

  keepOnly(wanted: (cell: number) => boolean): void {
    for (const cell of this.#byCell.keys()) if (!wanted(cell)) this.#byCell.delete(cell);
  }

  /**
   * Adds another sequence's snapshots of the first `length` cells. They are shared, not copied, because their content
   * never changes.
   */
  copyFrom(other: Snapshots, length: number): void {
    for (const [cell, snapshot] of other.#byCell) if (cell < length) this.#byCell.set(cell, snapshot);
  }

  /**
   * Returns the cells of a prefix of `length` tokens whose snapshots are worth keeping: the last cell with a snapshot,
   * and the last ones before a half, a quarter and an eighth of the cells up to it, where a prefix with the same
   * beginning can continue.
   */
  worthKeeping(length: number): Set<number> {
    const cells = [...this.#byCell.keys()].filter((cell) => cell < length).sort((a, b) => a - b);
    const last = cells.at(-1);
    if (last === undefined) return new Set();
    const ends = KEPT_FRACTIONS.map((fraction) => cells.findLast((cell) => cell < fraction * (last + 1)));
    return new Set([last, ...ends.flatMap((cell) => cell ?? [])]);
  }
}

/**
 * Returns the number of bytes of one snapshot.
 *
 * @param sizes number of floats of each state
 */
export function snapshotBytes(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + 4 * size, 0);
}

/**
 * Copies snapshots into new tensors, one row for each. Null stands for the states before the first token, which are
 * zero.
 */
export function gatherSnapshotRows(sizes: readonly number[], snapshots: readonly (Snapshot | null)[]): StateRows {
  const rows = snapshots.length;
  const tensors = sizes.map((size, index) => {
    const all = new Float32Array(rows * size);
    for (const [row, snapshot] of snapshots.entries()) {
      if (snapshot) all.set(rowOf(snapshot, index, size), row * size);
    }
    return all;
  });
  return { rows, tensors };
}

function rowOf({ states, row }: Snapshot, index: number, size: number): Float32Array {
  return at(states.tensors, index).subarray(row * size, (row + 1) * size);
}
