import { at } from '../../../lib/at.ts';
import type { ReadRows } from '../job.ts';
import type { BranchTokens } from './branch-tokens.ts';

/**
 * Reads the outputs of the model at some positions of a branch, such as those after an option and at the end, which a
 * decision model compares. Chooses no token.
 */
export class RowReading {
  readonly #reads: ReadRows;
  readonly #suffix: readonly number[];
  readonly #queue: BranchTokens;
  readonly #rows: Float32Array[] = [];
  #read = 0;

  constructor(reads: ReadRows, suffix: readonly number[], queue: BranchTokens) {
    this.#reads = reads;
    this.#suffix = suffix;
    this.#queue = queue;
  }

  /** Queues the branch's suffix, and requests the outputs after each position. */
  start(): void {
    let from = 0;
    for (const [index, position] of this.#reads.positions.entries()) {
      this.#queue.push(this.#suffix.slice(from, position + 1));
      this.#queue.requestLogits(index);
      from = position + 1;
    }
    this.#queue.push(this.#suffix.slice(from));
  }

  /** Keeps the outputs at the position with an index. Throws if they are not numbers. */
  deliver(index: number, outputs: Float32Array): void {
    const { outputs: wanted } = this.#reads;
    const row = wanted ? Float32Array.from(wanted, (output) => at(outputs, output)) : outputs.slice();
    if (!row.every(Number.isFinite)) throw new Error('the outputs are not numbers');
    this.#rows[index] = row;
    this.#read++;
  }

  /** The outputs at each position, once all of them are delivered; otherwise null. */
  get rows(): readonly Float32Array[] | null {
    return this.#read === this.#reads.positions.length ? this.#rows : null;
  }
}
