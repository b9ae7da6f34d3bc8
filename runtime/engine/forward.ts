import type { Sequence } from './sequence.ts';

/** One run of the model. Two implementations give the same answers: packed, and plain for graphs without GroupQueryAttention. */
export interface Forward {
  readonly vocabSize: number;
  /**
   * Runs the cells of `sequence` from `start` on and fills in their KV. Returns the logits of the cells `rows` (ascending), one row
   * of `vocabSize` after another; the array is reused by the next run. A model that keeps states puts a snapshot at each cell of `keep`, and needs
   * one at each earlier cell that the new ones follow.
   */
  run(sequence: Sequence, start: number, rows: readonly number[], keep?: readonly number[]): Promise<Float32Array>;
}

/** Typed scratch memory that grows to the largest size asked for and is used again. */
export class Scratch<T extends Float32Array | BigInt64Array> {
  readonly #make: (length: number) => T;
  #buffer: T;

  constructor(make: (length: number) => T) {
    this.#make = make;
    this.#buffer = make(0);
  }

  take(length: number): T {
    if (this.#buffer.length < length) this.#buffer = this.#make(Math.ceil(length * 1.25));
    return this.#buffer.subarray(0, length) as T;
  }
}
