import { ChangeSignal } from '../supervisor/change-signal.ts';

/**
 * Runs long work that any number of callers can follow. It continues after they leave, and later callers see the
 * current progress. A new progress report replaces one that was not read, so a slow reader delays nothing.
 */
export class FollowedOperation<Progress, Result> {
  readonly result: Promise<Result>;
  readonly #unfollowedMs: number;
  readonly #unfollowed = new AbortController();
  #followers = 0;
  #unfollowedTimer: NodeJS.Timeout | undefined;
  #latest: Progress | null = null;
  #ended = false;
  #version = 0;
  readonly #changed = new ChangeSignal();

  /**
   * Starts the work.
   *
   * @param work receives a function to report progress, and a signal that aborts once no caller has followed for
   *   `unfollowedMs`; the work may ignore the signal
   * @param unfollowedMs milliseconds without a follower after which the signal aborts
   */
  constructor(
    work: (report: (progress: Progress) => void, unfollowed: AbortSignal) => Promise<Result>,
    unfollowedMs: number,
  ) {
    this.#unfollowedMs = unfollowedMs;
    const report = (progress: Progress) => {
      this.#latest = progress;
      this.#version += 1;
      this.#changed.send();
    };
    this.result = work(report, this.#unfollowed.signal).finally(() => {
      this.#ended = true;
      this.#changed.send();
    });
    // If no caller follows, nothing else handles a rejection; each follower gets the error from `result`.
    this.result.catch(() => undefined);
  }

  /** Latest progress report; null before the first. */
  get latest(): Progress | null {
    return this.#latest;
  }

  /**
   * Yields the latest progress report and the later ones, except those that are replaced before they are read; then
   * returns the result. Throws the work's error, or the reason of `leaving` if it aborts.
   */
  async *follow(leaving?: AbortSignal): AsyncGenerator<Progress, Result> {
    this.#followers += 1;
    clearTimeout(this.#unfollowedTimer);
    const left = () => this.#changed.send();
    leaving?.addEventListener('abort', left);
    try {
      let seen = 0;
      for (;;) {
        leaving?.throwIfAborted();
        const changed = this.#changed.next;
        if (this.#version > seen && this.#latest !== null) {
          seen = this.#version;
          yield this.#latest;
        } else if (this.#ended) {
          return await this.result;
        } else {
          await changed;
        }
      }
    } finally {
      leaving?.removeEventListener('abort', left);
      this.#followers -= 1;
      if (this.#followers === 0 && !this.#ended) {
        this.#unfollowedTimer = setTimeout(() => this.#unfollowed.abort(), this.#unfollowedMs).unref();
      }
    }
  }
}
