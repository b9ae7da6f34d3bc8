/** Milliseconds after a caller's last job for which runs are still kept short for it. */
const RECENT_MS = 2_000;

/** Counts the tokens that the model has run for each caller, so that callers with work get equal shares. */
export class FairShares {
  /** Tokens run for each caller that has a job, or had one within `RECENT_MS`. */
  readonly #tokens = new Map<string, number>();
  readonly #jobs = new Map<string, number>();
  readonly #leftAt = new Map<string, number>();

  /** Returns the number of callers that have a job, or had one within the last seconds. */
  callers(now: number): number {
    for (const [caller, leftAt] of this.#leftAt) {
      if (now - leftAt < RECENT_MS) continue;
      this.#leftAt.delete(caller);
      this.#tokens.delete(caller);
    }
    return this.#tokens.size;
  }

  /** Records a new job. A caller that had none starts level with the caller that has got least. */
  add(caller: string): void {
    const jobs = this.#jobs.get(caller) ?? 0;
    if (jobs === 0) {
      const least = Math.min(...[...this.#jobs.keys()].map((other) => this.used(other)));
      this.#tokens.set(caller, Math.max(this.used(caller), Number.isFinite(least) ? least : 0));
      this.#leftAt.delete(caller);
    }
    this.#jobs.set(caller, jobs + 1);
  }

  /** Records that a job has ended. */
  remove(caller: string, now: number): void {
    const jobs = (this.#jobs.get(caller) ?? 0) - 1;
    if (jobs > 0) this.#jobs.set(caller, jobs);
    else {
      this.#jobs.delete(caller);
      this.#leftAt.set(caller, now);
    }
  }

  /** Adds the tokens that a run of the model spent on a caller. */
  charge(caller: string, tokens: number): void {
    this.#tokens.set(caller, this.used(caller) + tokens);
  }

  /** Returns the tokens that were run for a caller, as far as they are remembered. */
  used(caller: string): number {
    return this.#tokens.get(caller) ?? 0;
  }
}
