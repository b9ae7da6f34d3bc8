import type { Tensor } from 'onnxruntime-node';
import type { Sequence } from '../cache/sequence.ts';
import type { MediaFeatures } from './media-feeds.ts';

/**
 * Describes one sequence's part of a run. Its cells from `start` on are new; `rows` lists the cells whose logits are
 * needed, in ascending order.
 */
export interface SequenceRun {
  sequence: Sequence;
  start: number;
  rows: readonly number[];
  /**
   * Cells after which to store a state snapshot, for models with recurrent layers. Every cell before `start` that a new
   * cell follows must have a snapshot already.
   */
  keep?: readonly number[];
  /** Features of the images and recordings that tokens of the sequence represent. */
  media?: readonly MediaFeatures[];
  /** True if the new cells must have the same bits whatever else is in the run. */
  exact?: boolean;
}

/**
 * Runs a model's forward pass. All implementations give the same answers: `PackedForward`, `PlainForward` for graphs
 * without GroupQueryAttention, and `StaticForward` for devices that need fixed shapes.
 */
export interface Forward {
  readonly vocabSize: number;
  /** Maximum number of sequences in one run. */
  readonly slots: number;
  /** True if it can compute branches apart from their prefix (`Sequence.branches`). */
  readonly apart?: boolean;
  /**
   * Number of rows in whose multiples exact cells (`SequenceRun.exact`) are computed, where the CPU's kernels compute
   * the rows after whole blocks of so many in another way (`findIndependence`).
   */
  rowBlock?: RowBlock;
  /**
   * Computes the new cells of all sequences and writes their KV. Returns the logits of the cells in `rows`, one row of
   * `vocabSize` after another, sequence by sequence. The next run overwrites the returned array.
   */
  run(batch: readonly SequenceRun[]): Promise<Float32Array>;
}

/** Numbers of rows that kernels of onnxruntime compute at a time. */
export const ROW_BLOCKS = [1, 2, 4] as const;
export type RowBlock = (typeof ROW_BLOCKS)[number];

/**
 * Returns how many more rows a run needs because onnxruntime's kernels would multiply its last ones in another way:
 * those after whole blocks of 2 or 4, or else a single one after whole blocks of 32: in products with weights in all
 * precisions but whole 8-bit numbers, in attention in all.
 */
export function rowsMissing(count: number, block: RowBlock): number {
  return block > 1 ? (block - (count % block)) % block : Number(count > 1 && count % 32 === 1);
}

/**
 * Returns the only element of a batch, for implementations that run one sequence at a time. Throws unless there is
 * exactly one.
 */
export function onlyRun(batch: readonly SequenceRun[]): SequenceRun {
  const [run] = batch;
  if (!run || batch.length > 1) throw new Error('this model runs one sequence at a time');
  return run;
}

/**
 * Returns the data of a run's output `name`. Throws if there is no such output, or if it is not float32, which every
 * output of a compiled graph is.
 */
export function floatsOf(results: Readonly<Record<string, Tensor>>, name: string): Float32Array {
  const data = results[name]?.data;
  if (!(data instanceof Float32Array)) throw new Error(`the model gave no float32 ${name}`);
  return data;
}

/**
 * Reuses one buffer for temporary values. A result of `take` is valid until the next `take`, which returns the same
 * memory.
 */
export class Scratch<T extends Float32Array | BigInt64Array> {
  readonly #make: (length: number) => T;
  #buffer: T;

  constructor(make: (length: number) => T) {
    this.#make = make;
    this.#buffer = make(0);
  }

  /** Returns `length` elements with undefined values. Allocates a larger buffer if needed. */
  take(length: number): T {
    if (this.#buffer.length < length) this.#buffer = this.#make(Math.ceil(length * 1.25));
    return this.#buffer.subarray(0, length) as T;
  }
}
