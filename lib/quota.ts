import type { Clock } from './clock.ts';
import { AssayError } from './errors.ts';
import { QUOTA_UNITS, type Quota, type QuotaUnit, quotaOf } from './keys.ts';
import { changeBucket, type TokenBucket, takeToken } from './token-bucket.ts';

/** Creates a quota in the memory of this process, with a token bucket for each key name and unit. */
export function memoryQuota(clock: Pick<Clock, 'now'>): Quota {
  const buckets: Record<QuotaUnit, Map<string, TokenBucket>> = { requests: new Map(), tokens: new Map() };
  return {
    async take(key, used = { requests: 1 }) {
      for (const unit of QUOTA_UNITS) {
        const perMinute = quotaOf(key, unit);
        const amount = used[unit] ?? 0;
        if (perMinute === undefined || amount === 0) continue;
        const { bucket, retryAfterSeconds } = takeToken(buckets[unit].get(key.name), perMinute, clock.now(), amount);
        buckets[unit].set(key.name, bucket);
        if (retryAfterSeconds !== null) throw rateLimited(retryAfterSeconds, unit);
      }
    },
    async giveBack(key, unused) {
      for (const unit of QUOTA_UNITS) {
        const perMinute = quotaOf(key, unit);
        const amount = unused[unit] ?? 0;
        if (perMinute === undefined || amount === 0) continue;
        buckets[unit].set(key.name, changeBucket(buckets[unit].get(key.name), perMinute, clock.now(), amount));
      }
    },
  };
}

/** Returns the error `rate_limited` for a caller whose key has used up its quota. */
export function rateLimited(retryAfterSeconds: number, unit: QuotaUnit = 'requests'): AssayError {
  return new AssayError(
    'rate_limited',
    `This key has used up its ${unit} per minute. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}
