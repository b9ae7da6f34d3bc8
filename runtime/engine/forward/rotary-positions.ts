import { at } from '../../../lib/at.ts';

/** Describes the position of a token in an image, for a model that uses the row and column of image features. */
export interface InImage {
  /** Index of the token among the features of its image, row by row. */
  index: number;
  rows: number;
  columns: number;
}

/**
 * Holds the positions from which rotary embeddings with three parts (mRoPE) are computed: those of each cell in time,
 * height and width. A text token has the same position in all three, which is one more than the largest before it. The
 * features of an image have the same position in time. The text after an image continues after its longer side, so the
 * positions grow less than the number of tokens. Source: transformers 4.57, `modeling_qwen2_vl.py`, `get_rope_index`.
 */
export class RotaryPositions {
  readonly #axes: [time: Int32Array, height: Int32Array, width: Int32Array];
  /** Position of a text token that directly follows each cell. */
  readonly #next: Int32Array;

  constructor(capacity: number) {
    const table = () => new Int32Array(capacity);
    this.#axes = [table(), table(), table()];
    this.#next = table();
  }

  /**
   * Sets the positions of a cell that follows the cell `parent`, or is the first (-1).
   *
   * @param image position of an image feature; absent for text
   */
  place(cell: number, parent: number, image?: InImage): void {
    const [time, height, width] = this.#axes;
    // All features of an image have the time of the first one.
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

  /** Returns the positions of the cells from `start` to before `end`: in time, in height and in width. */
  of(start: number, end: number): [time: Int32Array, height: Int32Array, width: Int32Array] {
    const [time, height, width] = this.#axes;
    return [time.subarray(start, end), height.subarray(start, end), width.subarray(start, end)];
  }

  /** Throws if a cell's positions are impossible for a cell that follows `parent`. */
  check(cell: number, parent: number): void {
    const [time, height, width] = this.#axes.map((axis) => at(axis, cell)) as [number, number, number];
    const next = at(this.#next, cell);
    const before = parent < 0 ? 0 : at(this.#next, parent);
    const follows = time === before || (parent >= 0 && next === before && time === at(this.#axes[0], parent));
    if (!follows || height < time || width < time || next <= Math.max(height, width))
      throw new Error(`cell ${cell} has the wrong rotary positions`);
  }
}
