import type { FairShares } from '../../../lib/fair-shares.ts';
import { callerOf, isBatch, type SubmittedJob } from './active-job.ts';

/** Holds the jobs that wait for a sequence. */
export class WaitingJobs {
  readonly #entries: SubmittedJob[] = [];
  readonly #shares: FairShares;

  constructor(shares: FairShares) {
    this.#shares = shares;
  }

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
   * Returns the oldest job of each caller and priority, in the order in which they should start: interactive jobs
   * first, and of each priority those of the callers that got least.
   */
  get heads(): readonly SubmittedJob[] {
    const heads = new Map<string, SubmittedJob>();
    for (const submitted of this.#entries) {
      const key = `${isBatch(submitted)} ${callerOf(submitted)}`;
      if (!heads.has(key)) heads.set(key, submitted);
    }
    const used = (submitted: SubmittedJob) => this.#shares.used(callerOf(submitted));
    return [...heads.values()].sort((a, b) => Number(isBatch(a)) - Number(isBatch(b)) || used(a) - used(b));
  }

  remove(submitted: SubmittedJob): void {
    this.#entries.splice(this.#entries.indexOf(submitted), 1);
  }
}
