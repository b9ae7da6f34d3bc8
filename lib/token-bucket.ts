/** What is left of a key's requests per minute, at a moment. */
export interface TokenBucket {
  tokens: number;
  /** Milliseconds since 1970-01-01 UTC at which `tokens` was true. */
  at: number;
}

export interface Taken {
  bucket: TokenBucket;
  /** Whole seconds after which one more request passes, at least 1; null: this one passes. */
  retryAfterSeconds: number | null;
}

/** What floating-point sums of refills may lack of a whole token; far below one request. */
const EPSILON = 1e-6;

/**
 * Takes one request from a token bucket (Turner 1986) that holds one minute's worth and fills evenly. A refused request takes
 * nothing, and after exactly the time that it was told, the next one passes if nobody else came.
 *
 * @param room what the bucket cannot hold at the moment, as its tokens are elsewhere
 */
export function takeToken(bucket: TokenBucket | undefined, requestsPerMinute: number, now: number, room = 0): Taken {
  const capacity = Math.max(1, requestsPerMinute);
  const perMs = requestsPerMinute / 60_000;
  // A clock that went back refills nothing.
  const grown = bucket ? bucket.tokens + Math.max(0, now - bucket.at) * perMs : capacity;
  const tokens = Math.min(Math.max(0, capacity - room), grown);
  if (tokens >= 1 - EPSILON) return { bucket: { tokens: Math.max(0, tokens - 1), at: now }, retryAfterSeconds: null };
  const waitMs = (1 - EPSILON - tokens) / perMs;
  return { bucket: { tokens, at: now }, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/** Milliseconds until the bucket is full again and need not be remembered. */
export function fullAfterMs(bucket: TokenBucket, requestsPerMinute: number): number {
  return Math.max(0, ((Math.max(1, requestsPerMinute) - bucket.tokens) * 60_000) / requestsPerMinute);
}
