/** Holds what a key may still use of a quota, as counted at one moment. Fractions come from the continuous refill. */
export interface TokenBucket {
  /** Amount left; negative after a request that used more than was left. */
  tokens: number;
  /** Time of the count, in milliseconds since 1970-01-01 UTC. */
  at: number;
}

export interface Taken {
  /** State after this request. */
  bucket: TokenBucket;
  /** Whole seconds until the amount is accepted, at least 1; null if it is accepted. */
  retryAfterSeconds: number | null;
}

/** Tolerance for rounding errors in the floating-point sums of refills, far below one request. */
const EPSILON = 1e-6;

/**
 * Takes an amount from a token bucket (Turner 1986), which holds what is allowed in one minute (at least one) and
 * refills evenly. A refused amount takes nothing; after the reported time it is accepted, if no other came first. An
 * amount larger than the bucket is accepted when the bucket is full, and leaves it below zero.
 *
 * @param bucket state after the previous request; undefined for a full bucket
 * @param perMinute size of the bucket and its refill per minute; above 0
 * @param now milliseconds since 1970-01-01 UTC
 */
export function takeToken(bucket: TokenBucket | undefined, perMinute: number, now: number, amount = 1): Taken {
  const filled = refilled(bucket, perMinute, now);
  const missing = Math.min(amount, capacityOf(perMinute)) - EPSILON - filled.tokens;
  if (missing <= 0) {
    // Only an amount beyond the bucket leaves it below zero, never the tolerance.
    const left = filled.tokens - amount;
    return { bucket: { tokens: left > -1 ? Math.max(0, left) : left, at: now }, retryAfterSeconds: null };
  }
  return { bucket: filled, retryAfterSeconds: Math.max(1, Math.ceil((missing / perMinute) * 60)) };
}

/** Adds an amount to a bucket, or takes it if it is negative, also below zero. A bucket never holds more than fits. */
export function changeBucket(
  bucket: TokenBucket | undefined,
  perMinute: number,
  now: number,
  amount: number,
): TokenBucket {
  const { tokens } = refilled(bucket, perMinute, now);
  return { tokens: Math.min(capacityOf(perMinute), tokens + amount), at: now };
}

/**
 * Returns the number of milliseconds after `bucket.at` at which the bucket is full again, so that it need not be stored
 * any longer.
 */
export function fullAfterMs(bucket: TokenBucket, perMinute: number): number {
  return Math.max(0, ((capacityOf(perMinute) - bucket.tokens) * 60_000) / perMinute);
}

function refilled(bucket: TokenBucket | undefined, perMinute: number, now: number): TokenBucket {
  const capacity = capacityOf(perMinute);
  // If the clock was set back, nothing is refilled.
  const grown = bucket ? bucket.tokens + Math.max(0, now - bucket.at) * (perMinute / 60_000) : capacity;
  return { tokens: Math.min(capacity, grown), at: now };
}

function capacityOf(perMinute: number): number {
  return Math.max(1, perMinute);
}
