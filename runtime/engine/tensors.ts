import { Tensor } from 'onnxruntime-node';

/** Returns the entries `start` to `end` of a cell table as a `[1, n]` tensor. */
export function integers(values: Int32Array | Float64Array, start: number, end: number): Tensor {
  return new Tensor('int64', BigInt64Array.from(values.subarray(start, end), BigInt), [1, end - start]);
}

/** Returns numbers as an int64 vector. */
export function int64(values: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length]);
}

/** Copies rows out of the logits of all positions. */
export function gather(logits: Float32Array, rows: readonly number[], vocabSize: number): Float32Array {
  const picked = new Float32Array(rows.length * vocabSize);
  for (const [index, row] of rows.entries()) {
    picked.set(logits.subarray(row * vocabSize, (row + 1) * vocabSize), index * vocabSize);
  }
  return picked;
}

/** Returns rows of logits one after another. */
export class LogitRows {
  readonly #logits: Float32Array;
  readonly #vocabSize: number;
  #next = 0;

  constructor(logits: Float32Array, vocabSize: number) {
    this.#logits = logits;
    this.#vocabSize = vocabSize;
  }

  /** Returns the next `count` rows as a view. */
  take(count: number): Float32Array {
    const from = this.#next;
    this.#next += count * this.#vocabSize;
    return this.#logits.subarray(from, this.#next);
  }
}
