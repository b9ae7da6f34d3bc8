import { type Entry, isBatch } from './turn.ts';

/** Interactive jobs that may pass a waiting batch job before it has its turn. */
export const MOST_PASSING = 3;

/** Holds the jobs that wait for a sequence: interactive ones go first, each kind in the order in which it came. */
export class WaitingJobs {
  readonly #entries: Entry[] = [];
  /** Interactive jobs that were admitted since a batch job waits. */
  #passed = 0;

  get length(): number {
    return this.#entries.length;
  }

  /** Returns all waiting jobs, in the order in which they came. */
  get all(): readonly Entry[] {
    return [...this.#entries];
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  /** Returns the next job to admit. A batch job waits for at most `MOST_PASSING` interactive ones that came later. */
  next(): Entry | undefined {
    const batch = this.#entries.find(isBatch);
    const interactive = this.#entries.find((entry) => !isBatch(entry));
    if (batch && this.#passed >= MOST_PASSING) return batch;
    return interactive ?? batch;
  }

  /** Removes a job that got a sequence. */
  admit(entry: Entry): void {
    this.remove(entry);
    this.#passed = isBatch(entry) || !this.#entries.some(isBatch) ? 0 : this.#passed + 1;
  }

  remove(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
  }
}
