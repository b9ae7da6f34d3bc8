import { retryAfter } from './errors.ts';

/**
 * Longest wait before a retry, in seconds. If the server asks for a longer one, the call fails and the caller decides.
 */
const LONGEST_WAIT = 60;
/** Wait before the first retry, in seconds; it doubles for each further retry. */
const FIRST_BACKOFF = 0.5;
/** Longest wait before a retry, in seconds, if the server stated no time. */
const LONGEST_BACKOFF = 8;

/**
 * Returns the seconds to wait before a retry, or null for no retry: the time in `Retry-After` after 429, an exponential
 * back-off after 5xx, and no retry after any other status. `attempt` counts from 0.
 */
export function waitBeforeRetry(response: Response, attempt: number): number | null {
  if (response.status !== 429 && response.status < 500) return null;
  const named = retryAfter(response);
  if (named !== null) return named <= LONGEST_WAIT ? named : null;
  return Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** attempt) * (0.75 + 0.25 * Math.random());
}

/** Waits for a number of seconds. Rejects with the signal's reason if the signal aborts. */
export function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
