import { at } from '../../lib/at.ts';

/** Holds the states of several sequences: for each state of the model `[rows, ...]`. */
export interface StateRows {
  rows: number;
  tensors: readonly Float32Array[];
}

/** Holds the states of one sequence after one of its cells. */
export interface Snapshot {
  states: StateRows;
  row: number;
}

/** Fractions of a prefix at which snapshots are kept, besides the one at its end. */
const KEPT_FRACTIONS = [1 / 2, 1 / 4, 1 / 8];
/** Most snapshots of a prefix. */
export const MOST_SNAPSHOTS = KEPT_FRACTIONS.length + 1;

/**
 * Holds the states of layers without attention, after some cells of a sequence. Such a state cannot be rolled back, so
 * a sequence can only continue after a cell that has a snapshot.
 */
export class Snapshots {
  /** Floats of each state. */
  readonly #sizes: readonly number[];
  readonly #byCell = new Map<number, Snapshot>();

  constructor(sizes: readonly number[]) {
    this.#sizes = sizes;
  }

  /** True when the model has such states. */
  get needed(): boolean {
    return this.#sizes.length > 0;
  }

  /** Bytes of all snapshots; shared ones count for each sequence. */
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

  /** Returns how many of the first `length` cells a sequence can continue after. */
  resumableLength(length: number): number {
    if (!this.needed) return length;
    let best = 0;
    for (const cell of this.#byCell.keys()) if (cell < length) best = Math.max(best, cell + 1);
    return best;
  }

  /** Forgets the snapshots from a cell on. */
  truncate(length: number): void {
    this.keepOnly((cell) => cell < length);
  }

  keepOnly(wanted: (cell: number) => boolean): void {
    for (const cell of this.#byCell.keys()) if (!wanted(cell)) this.#byCell.delete(cell);
  }

  /** Shares another sequence's snapshots of the first `length` cells: their content never changes. */
  copyFrom(other: Snapshots, length: number): void {
    for (const [cell, snapshot] of other.#byCell) if (cell < length) this.#byCell.set(cell, snapshot);
  }

  /**
   * Returns the cells whose snapshots are worth keeping: the end of a prefix, and near a half, a quarter and an eighth
   * of it, for prefixes with the same beginning.
   */
  worthKeeping(length: number): Set<number> {
    const cells = [...this.#byCell.keys()].filter((cell) => cell < length).sort((a, b) => a - b);
    const last = cells.at(-1) ?? -1;
    const ends = KEPT_FRACTIONS.map((fraction) => cells.findLast((cell) => cell < fraction * (last + 1)));
    return new Set([last, ...ends.flatMap((cell) => cell ?? [])]);
  }
}

/** Returns the bytes of the states after one cell. */
export function snapshotBytes(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + 4 * size, 0);
}

/** Copies snapshots into rows; null stands for the states before the first token, which are zero. */
export function gatherRows(sizes: readonly number[], snapshots: readonly (Snapshot | null)[]): StateRows {
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
