/**
 * Holds how many requests a key may still send, as counted at one moment. Fractions come from the continuous refill.
 */
export interface TokenBucket {
  /** Number of requests left, at least 0. */
  tokens: number;
  /** Time of the count, in milliseconds since 1970-01-01 UTC. */
  at: number;
}

export interface Taken {
  /** State after this request. */
  bucket: TokenBucket;
  /** Whole seconds until one more request is accepted, at least 1; null if this request is accepted. */
  retryAfterSeconds: number | null;
}

/** Tolerance for rounding errors in the floating-point sums of refills, far below one request. */
const EPSILON = 1e-6;

/**
 * Takes one request from a token bucket (Turner 1986), which holds the requests of one minute (at least one) and
 * refills evenly. A refused request takes nothing; after the reported time one is accepted, if no other came first.
 *
 * @param bucket state after the previous request; undefined for a full bucket
 * @param requestsPerMinute size of the bucket and its refill per minute; above 0
 * @param now milliseconds since 1970-01-01 UTC
 */
export function takeToken(bucket: TokenBucket | undefined, requestsPerMinute: number, now: number): Taken {
  const capacity = Math.max(1, requestsPerMinute);
  const perMs = requestsPerMinute / 60_000;
  // If the clock was set back, nothing is refilled.
  const grown = bucket ? bucket.tokens + Math.max(0, now - bucket.at) * perMs : capacity;
  const tokens = Math.min(capacity, grown);
  if (tokens >= 1 - EPSILON) return { bucket: { tokens: Math.max(0, tokens - 1), at: now }, retryAfterSeconds: null };
  const waitMs = (1 - EPSILON - tokens) / perMs;
  return { bucket: { tokens, at: now }, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/**
 * Returns the number of milliseconds after `bucket.at` at which the bucket is full again, so that it need not be stored
 * any longer.
 */
export function fullAfterMs(bucket: TokenBucket, requestsPerMinute: number): number {
  return Math.max(0, ((Math.max(1, requestsPerMinute) - bucket.tokens) * 60_000) / requestsPerMinute);
}
