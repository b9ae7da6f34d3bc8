import type { Sequence } from './sequence.ts';

/** One sequence's part of a run: its cells from `start` on are new, and the logits of the cells `rows` (ascending) are wanted. */
export interface SequenceRun {
  sequence: Sequence;
  start: number;
  rows: readonly number[];
  /** Cells at which a model that keeps states puts a snapshot. It needs one at each earlier cell that the new ones follow. */
  keep?: readonly number[];
}

/**
 * Runs the model. The implementations give the same answers: packed, plain for graphs without GroupQueryAttention, and static for devices
 * that take fixed shapes.
 */
export interface Forward {
  readonly vocabSize: number;
  /** How many sequences one run can take. */
  readonly slots: number;
  /**
   * Runs the new cells of all sequences together and fills in their KV. Returns the logits of all wanted rows in the order of `batch`, one row of
   * `vocabSize` after another; the array is reused by the next run. Takes at most `slots` sequences, each once.
   */
  run(batch: readonly SequenceRun[]): Promise<Float32Array>;
}

/** Takes the one sequence of a run, for implementations with a single slot. */
export function onlyRun(batch: readonly SequenceRun[]): SequenceRun {
  const [run] = batch;
  if (!run || batch.length > 1) throw new Error('this model runs one sequence at a time');
  return run;
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
