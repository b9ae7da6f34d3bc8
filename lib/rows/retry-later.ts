import type { Clock } from '../clock.ts';
import { AssayError, type ErrorCode } from '../errors.ts';

/** Errors of the server that may pass. */
export const OF_SERVER: ReadonlySet<ErrorCode> = new Set([
  'engine_failed',
  'backend_unreachable',
  'timeout',
  'internal_error',
]);

/**
 * Repeats requests that a busy server refused (`overloaded`, `rate_limited`) after the seconds that it names. Requests
 * that share one object all wait meanwhile, so that they do not add to the load.
 */
export class RetryLater {
  readonly #clock: Clock;
  #until = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the result of `ask` once the server is not too busy for it. Rejects with other errors, or if aborted. */
  async run<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      for (let now = this.#clock.now(); now < this.#until; now = this.#clock.now()) {
        await this.#clock.sleep(this.#until - now, signal);
        signal?.throwIfAborted();
      }
      try {
        return await ask();
      } catch (error) {
        if (!isBusy(error)) throw error;
        const seconds = Math.min(error.retryAfterSeconds ?? 1, MOST_SECONDS);
        this.#until = Math.max(this.#until, this.#clock.now() + seconds * 1000);
      }
    }
  }
}

/** Longest wait after one refusal: a wrong clock must not stop a run for good. */
const MOST_SECONDS = 120;

function isBusy(error: unknown): error is AssayError {
  return error instanceof AssayError && (error.code === 'overloaded' || error.code === 'rate_limited');
}
