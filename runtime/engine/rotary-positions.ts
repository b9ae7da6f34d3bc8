import { at } from '../../lib/at.ts';

/** Says where a token stands in an image whose features are placed by row and column. */
export interface InImage {
  /** Index among the features of its image. */
  index: number;
  rows: number;
  columns: number;
}

/**
 * Holds what rotary embeddings with three parts (mRoPE) are computed from: the position of each cell in time, height
 * and width. A text token has one position in all three, one beyond the largest before it. The features of an image
 * share their time; the text behind them goes on behind its longer side, so there are fewer positions than tokens.
 * Source: transformers 4.57, `modeling_qwen2_vl.py`, `get_rope_index`.
 */
export class RotaryPositions {
  readonly #axes: [time: Int32Array, height: Int32Array, width: Int32Array];
  /** Position of a text token behind the cell. */
  readonly #next: Int32Array;

  constructor(capacity: number) {
    const table = () => new Int32Array(capacity);
    this.#axes = [table(), table(), table()];
    this.#next = table();
  }

  /** Places a cell behind `parent`; -1: the first. Absent `image`: it is text. */
  place(cell: number, parent: number, image?: InImage): void {
    const [time, height, width] = this.#axes;
    // All features of an image have the time of its first one.
    const first = parent < 0 ? 0 : at(image && image.index > 0 ? time : this.#next, parent);
    time[cell] = first;
    height[cell] = first + (image ? Math.floor(image.index / image.columns) : 0);
    width[cell] = first + (image ? image.index % image.columns : 0);
    this.#next[cell] = first + (image ? Math.max(image.rows, image.columns) : 1);
  }

  copyFrom(other: RotaryPositions, count: number): void {
    for (const [axis, values] of this.#axes.entries()) values.set(at(other.#axes, axis).subarray(0, count));
    this.#next.set(other.#next.subarray(0, count));
  }

  /** Returns the positions of some cells in time, then in height, then in width. */
  of(start: number, end: number): [time: Int32Array, height: Int32Array, width: Int32Array] {
    const [time, height, width] = this.#axes;
    return [time.subarray(start, end), height.subarray(start, end), width.subarray(start, end)];
  }

  /** Throws when a cell is not where a cell behind `parent` can be. */
  check(cell: number, parent: number): void {
    const [time, height, width] = this.#axes.map((axis) => at(axis, cell)) as [number, number, number];
    const next = at(this.#next, cell);
    const before = parent < 0 ? 0 : at(this.#next, parent);
    const follows = time === before || (parent >= 0 && next === before && time === at(this.#axes[0], parent));
    if (!follows || height < time || width < time || next <= Math.max(height, width))
      throw new Error(`cell ${cell} has the wrong rotary positions`);
  }
}
