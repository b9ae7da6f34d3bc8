import type { Tensor } from 'onnxruntime-node';
import type { MediaFeatures } from './media-feeds.ts';
import type { Sequence } from './sequence.ts';

/**
 * Describes one sequence's part of a run: its cells from `start` on are new, and the logits of the cells `rows`
 * (ascending) are needed.
 */
export interface SequenceRun {
  sequence: Sequence;
  start: number;
  rows: readonly number[];
  /**
   * Cells at which a model that keeps states stores a snapshot. It needs one at each earlier cell that the new ones
   * follow.
   */
  keep?: readonly number[];
  /** The media that tokens of the sequence represent. */
  media?: readonly MediaFeatures[];
}

/**
 * Runs the model. The implementations give the same answers: `PackedForward`, `PlainForward` for graphs without
 * GroupQueryAttention, and `StaticForward` for devices that need fixed shapes.
 */
export interface Forward {
  readonly vocabSize: number;
  /** Sequences that one run can take. */
  readonly slots: number;
  /**
   * Runs the new cells of all sequences and writes their KV. Returns the logits of the needed cells, one row of
   * `vocabSize` after another, sequence by sequence. The next run reuses the array.
   */
  run(batch: readonly SequenceRun[]): Promise<Float32Array>;
}

/** Returns the only sequence of a run, for implementations with a single slot. */
export function onlyRun(batch: readonly SequenceRun[]): SequenceRun {
  const [run] = batch;
  if (!run || batch.length > 1) throw new Error('this model runs one sequence at a time');
  return run;
}

/** Returns a result of a run, which is float32 in every compiled graph. */
export function floatsOf(results: Readonly<Record<string, Tensor>>, name: string): Float32Array {
  const data = results[name]?.data;
  if (!(data instanceof Float32Array)) throw new Error(`the model gave no float32 ${name}`);
  return data;
}

/** Holds typed scratch memory that grows to the largest size asked for and is reused. */
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
