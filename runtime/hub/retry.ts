const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/**
 * Returns the milliseconds to wait before the next attempt. The full wait doubles with each attempt, from 0.5 to 30
 * seconds. A random part of up to half of it is subtracted, which keeps many clients from returning at the same time
 * ("equal jitter" in the AWS architecture blog's "Exponential Backoff And Jitter").
 *
 * @param tried number of attempts that have failed, at least 1
 * @param random random number from 0 to 1
 */
export function backoff(tried: number, random: number): number {
  const full = Math.min(FIRST_MS * 2 ** (tried - 1), LONGEST_MS);
  return full / 2 + (full / 2) * random;
}

const LONGEST_RETRY_AFTER_MS = 5 * 60_000;

/**
 * Returns the wait that the header `Retry-After` requests (RFC 9110, 10.2.3), in milliseconds, at most five minutes.
 * Returns null if the header is absent or neither a number nor a date.
 */
export function retryAfterMs(headers: Headers | undefined, nowMs: number = Date.now()): number | null {
  const value = headers?.get('retry-after');
  if (!value) return null;
  const wait = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER_MS);
}
