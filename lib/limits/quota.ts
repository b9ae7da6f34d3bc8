import type { Clock } from '../clock.ts';
import { AssayError } from '../errors.ts';
import { type ApiKey, limitsOf, QUOTA_UNITS, type Quota, type QuotaAmount, type QuotaUnit } from '../keys.ts';
import { changeBucket, type TokenBucket, takeToken } from './token-bucket.ts';

/** Creates a quota in the memory of this process, with a token bucket for each key name, limit and unit. */
export function memoryQuota(clock: Pick<Clock, 'now'>): Quota {
  const buckets: Record<QuotaUnit, Map<string, TokenBucket>> = { requests: new Map(), tokens: new Map() };
  const counted = (key: ApiKey, amounts: QuotaAmount, model?: string) =>
    QUOTA_UNITS.flatMap((unit) => {
      const amount = amounts[unit] ?? 0;
      const limits = amount === 0 ? [] : limitsOf(key, unit, model);
      return limits.map((limit) => ({ ...limit, unit, amount, name: `${key.name} ${limit.models}` }));
    });
  return {
    async take(key, used = { requests: 1 }, model) {
      for (const { unit, amount, name, models, perMinute } of counted(key, used, model)) {
        const { bucket, retryAfterSeconds } = takeToken(buckets[unit].get(name), perMinute, clock.now(), amount);
        buckets[unit].set(name, bucket);
        if (retryAfterSeconds !== null) throw rateLimited(retryAfterSeconds, unit, models);
      }
    },
    async giveBack(key, unused, model) {
      for (const { unit, amount, name, perMinute } of counted(key, unused, model))
        buckets[unit].set(name, changeBucket(buckets[unit].get(name), perMinute, clock.now(), amount));
    },
  };
}

/**
 * Returns the error `rate_limited` for a caller whose key has used up its quota: that for the models of a pattern,
 * empty for that of the key as a whole.
 */
export function rateLimited(retryAfterSeconds: number, unit: QuotaUnit = 'requests', models = ''): AssayError {
  return new AssayError(
    'rate_limited',
    `This key has used up its ${unit} per minute${models === '' ? '' : ` for ${models}`}. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}
