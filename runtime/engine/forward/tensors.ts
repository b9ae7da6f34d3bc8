import { Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import { floatBuffer, type KvLayerBuffers } from '../cache/kv-shape.ts';
import type { Sequence } from '../cache/sequence.ts';
import type { Cells } from './media-feeds.ts';

/** Value added to the attention score of a cell that a token must not see; its weight becomes exactly 0. */
export const HIDDEN = -1e9;

/** Returns the entries from `start` to before `end` of a cell table as an int64 tensor `[1, end - start]`. */
export function integers(values: Int32Array | Float64Array, start: number, end: number): Tensor {
  return new Tensor('int64', BigInt64Array.from(values.subarray(start, end), BigInt), [1, end - start]);
}

/**
 * Returns the positions of some cells as a graph's input: `[1, n]`, or `[3, 1, n]` if the model has rotary embeddings
 * with three parts.
 */
export function positionTensor({ positionRows }: Manifest['inputs'], parts: readonly Cells[]): Tensor {
  const rows = parts.map(({ sequence, start, end }) =>
    positionRows ? sequence.rotary.of(start, end) : [sequence.positions.subarray(start, end)],
  );
  const values = Array.from({ length: positionRows ?? 1 }, (_, row) =>
    rows.flatMap((part) => [...at(part, row)]),
  ).flat();
  const count = values.length / (positionRows ?? 1);
  return new Tensor('int64', BigInt64Array.from(values, BigInt), positionRows ? [positionRows, 1, count] : [1, count]);
}

/** Returns numbers as a one-dimensional int64 tensor. */
export function int64(values: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length]);
}

/** Returns a copy of the given rows of `logits`, which has one row of `vocabSize` for each position. */
export function gather(logits: Float32Array, rows: readonly number[], vocabSize: number): Float32Array {
  const picked = new Float32Array(rows.length * vocabSize);
  for (const [index, row] of rows.entries()) {
    picked.set(logits.subarray(row * vocabSize, (row + 1) * vocabSize), index * vocabSize);
  }
  return picked;
}

/** Hands out the rows of a run's logits in order. */
export class LogitRows {
  readonly #logits: Float32Array;
  readonly #vocabSize: number;
  #next = 0;

  constructor(logits: Float32Array, vocabSize: number) {
    this.#logits = logits;
    this.#vocabSize = vocabSize;
  }

  /** Returns the next `count` rows as a view of the logits. */
  take(count: number): Float32Array {
    const from = this.#next;
    this.#next += count * this.#vocabSize;
    return this.#logits.subarray(from, this.#next);
  }
}

/** KV tensors of each sequence, keys and values layer by layer. Created once for a sequence's buffers. */
const tensors = new WeakMap<readonly KvLayerBuffers[], readonly Tensor[]>();

/** Returns the KV of a sequence as tensors, keys and values layer by layer. */
export function kvTensors({ kv }: Manifest, { layers, capacity }: Sequence): readonly Tensor[] {
  const known = tensors.get(layers);
  if (known) return known;
  const made = kv.flatMap(({ heads, headSize }, index) => {
    const layer = layers[index];
    if (!layer) throw new Error(`the sequence has no layer ${index}`);
    return [layer.key, layer.value].map(
      (data) => new Tensor('float32', floatBuffer(data), [1, heads, capacity, headSize]),
    );
  });
  tensors.set(layers, made);
  return made;
}
