import { isBatch, type SubmittedJob } from './active-job.ts';

/** Number of interactive jobs that may be admitted while a batch job waits; then the batch job is next. */
export const MOST_PASSING = 3;

/** Holds the jobs that wait for a sequence: interactive jobs first, each priority in order of arrival. */
export class WaitingJobs {
  readonly #entries: SubmittedJob[] = [];
  /** Number of interactive jobs admitted while a batch job waits. */
  #passed = 0;

  get length(): number {
    return this.#entries.length;
  }

  /** Returns all waiting jobs, in order of arrival. */
  get all(): readonly SubmittedJob[] {
    return [...this.#entries];
  }

  add(submitted: SubmittedJob): void {
    this.#entries.push(submitted);
  }

  /**
   * Returns the next job to admit: an interactive one, or a batch job once `MOST_PASSING` interactive ones have passed
   * it. Returns undefined if no job waits.
   */
  next(): SubmittedJob | undefined {
    const batch = this.#entries.find(isBatch);
    const interactive = this.#entries.find((submitted) => !isBatch(submitted));
    if (batch && this.#passed >= MOST_PASSING) return batch;
    return interactive ?? batch;
  }

  /**
   * Removes a job from the queue because it got a sequence. Counts an interactive one against the batch jobs that wait.
   */
  admit(submitted: SubmittedJob): void {
    this.remove(submitted);
    this.#passed = isBatch(submitted) || !this.#entries.some(isBatch) ? 0 : this.#passed + 1;
  }

  remove(submitted: SubmittedJob): void {
    this.#entries.splice(this.#entries.indexOf(submitted), 1);
  }
}
