import { type Entry, isBatch } from './turn.ts';

/** Most interactive jobs that are admitted before a batch job that waits. */
export const MOST_PASSING = 3;

/** Holds the jobs that wait for a sequence: interactive jobs first, each priority in order of arrival. */
export class WaitingJobs {
  readonly #entries: Entry[] = [];
  /** Number of interactive jobs admitted while a batch job waits. */
  #passed = 0;

  get length(): number {
    return this.#entries.length;
  }

  /** Returns all waiting jobs, in order of arrival. */
  get all(): readonly Entry[] {
    return [...this.#entries];
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  /**
   * Returns the next job to admit: an interactive one, or a batch job once it has let `MOST_PASSING` interactive ones
   * pass.
   */
  next(): Entry | undefined {
    const batch = this.#entries.find(isBatch);
    const interactive = this.#entries.find((entry) => !isBatch(entry));
    if (batch && this.#passed >= MOST_PASSING) return batch;
    return interactive ?? batch;
  }

  /** Removes a job from the queue because it got a sequence. */
  admit(entry: Entry): void {
    this.remove(entry);
    this.#passed = isBatch(entry) || !this.#entries.some(isBatch) ? 0 : this.#passed + 1;
  }

  remove(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
  }
}
