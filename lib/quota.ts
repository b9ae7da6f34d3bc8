import type { Clock } from './clock.ts';
import { AssayError } from './errors.ts';
import type { Quota } from './keys.ts';
import { type TokenBucket, takeToken } from './token-bucket.ts';

/** Creates a quota that counts requests in the memory of this process, in one token bucket for each key name. */
export function memoryQuota(clock: Pick<Clock, 'now'>): Quota {
  const buckets = new Map<string, TokenBucket>();
  return {
    async take({ name, requestsPerMinute }) {
      if (requestsPerMinute === undefined) return;
      const { bucket, retryAfterSeconds } = takeToken(buckets.get(name), requestsPerMinute, clock.now());
      buckets.set(name, bucket);
      if (retryAfterSeconds !== null) throw rateLimited(retryAfterSeconds);
    },
  };
}

/** Returns the error `rate_limited` for a caller whose key has used up its quota. */
export function rateLimited(retryAfterSeconds: number): AssayError {
  return new AssayError(
    'rate_limited',
    `This key has used up its requests per minute. Try again in ${retryAfterSeconds} s.`,
    {
      retryAfterSeconds,
    },
  );
}
