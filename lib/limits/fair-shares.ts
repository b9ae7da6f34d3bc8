/**
 * Milliseconds after a caller's last job for which runs are still kept short for it. Short runs are about as fast per
 * token, and its next request has to wait for the end of one.
 */
const RECENT_MS = 60_000;
/**
 * Milliseconds by which a caller that comes is ahead of the caller that has got least: a short request is so served
 * before those that have got much already. A caller that begins much work makes the others wait for no more than this.
 */
const CREDIT = 256;

/**
 * Counts what each caller has used of the time of a model or a process, so that callers with work get equal shares.
 */
export class FairShares {
  /** Amount used by each caller that has a job, or had one within `RECENT_MS`. */
  readonly #used = new Map<string, number>();
  readonly #jobs = new Map<string, number>();
  readonly #leftAt = new Map<string, number>();
  /** Highest amount so far that the callers with jobs had all used; a caller that comes has used about as much. */
  #floor = 0;

  /** Returns the number of callers that have a job, or had one within `RECENT_MS`. */
  callers(now: number): number {
    this.#forget(now);
    return this.#used.size;
  }

  #forget(now: number): void {
    for (const [caller, leftAt] of this.#leftAt) {
      if (now - leftAt < RECENT_MS) continue;
      this.#leftAt.delete(caller);
      this.#used.delete(caller);
    }
  }

  /**
   * Records a new job. A caller that had none is ahead of all others, by `CREDIT` at most. The share of the time that
   * it left to others before is given back to it: one with steady short requests stays ahead of one that comes.
   */
  add(caller: string, now: number): void {
    const jobs = this.#jobs.get(caller) ?? 0;
    if (jobs === 0) {
      this.#raiseFloor();
      const left = (now - (this.#leftAt.get(caller) ?? now)) / Math.max(1, this.#used.size);
      this.#used.set(caller, Math.max(this.used(caller) - left, this.#floor - CREDIT));
      this.#leftAt.delete(caller);
    }
    this.#jobs.set(caller, jobs + 1);
  }

  /** Records that a job has ended. */
  remove(caller: string, now: number): void {
    const jobs = (this.#jobs.get(caller) ?? 0) - 1;
    if (jobs > 0) this.#jobs.set(caller, jobs);
    else {
      this.#raiseFloor();
      this.#jobs.delete(caller);
      this.#forget(now);
      this.#leftAt.set(caller, now);
    }
  }

  /** Adds what was spent on a caller. */
  charge(caller: string, amount: number): void {
    this.#used.set(caller, this.used(caller) + amount);
  }

  /** Returns what a caller has used, as far as it is remembered. */
  used(caller: string): number {
    return this.#used.get(caller) ?? 0;
  }

  /** Removes the first item of the caller that has used least, and returns it; undefined if there is none. */
  takeNext<T extends { caller: string }>(waiting: T[]): T | undefined {
    const used = waiting.map(({ caller }) => this.used(caller));
    return waiting.splice(used.indexOf(Math.min(...used)), 1)[0];
  }

  #raiseFloor(): void {
    if (this.#jobs.size === 0) return;
    this.#floor = Math.max(this.#floor, Math.min(...[...this.#jobs.keys()].map((caller) => this.used(caller))));
  }
}
