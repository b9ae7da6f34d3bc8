import { type TokenBucket, takeToken } from '../../../lib/token-bucket.ts';
import { LEASE_MS } from './lease.ts';

/** One isolate may hold a second's worth of the key's tokens, */
const PART_OF_A_MINUTE = 1 / 60;
/** and only while more than this part of the bucket is left for the others: towards its end every request is counted one by one. */
const PART_KEPT = 1 / 2;
/** Clocks of isolates stand still while they compute, so a lease is waited for longer than it lasts. */
const LENT_MS = 2 * LEASE_MS;

export interface Given {
  /** Seconds to wait where there is no token for the request, else null. */
  retryAfterSeconds: number | null;
  /** Tokens for requests to come. */
  ahead: number;
}

/** The calls that edges make to the Durable Object of a key. */
export interface QuotaCalls {
  /** Takes the token of one request, and up to `wanted` more. */
  take(requestsPerMinute: number, wanted: number): Promise<Given>;
}

/**
 * A token bucket that lends. Never lets more pass than the bucket alone would: tokens are lent out of it, and while they may be
 * unused they still take up room in it, so that it does not fill in their place.
 */
export class LendingBucket {
  bucket: TokenBucket | undefined;
  #lent: { tokens: number; until: number }[] = [];

  constructor(bucket?: TokenBucket) {
    this.bucket = bucket;
  }

  /** Takes the token of one request, and up to `wanted` more. */
  take(requestsPerMinute: number, wanted: number, now: number): Given {
    this.#lent = this.#lent.filter(({ until }) => now < until);
    const room = this.#lent.reduce((sum, { tokens }) => sum + tokens, 0);
    const { bucket, retryAfterSeconds } = takeToken(this.bucket, requestsPerMinute, now, room);
    const spare = Math.floor(bucket.tokens - PART_KEPT * requestsPerMinute);
    const most = Math.floor(PART_OF_A_MINUTE * requestsPerMinute);
    const ahead = Math.max(0, Math.min(wanted, most, spare));
    if (ahead > 0) this.#lent.push({ tokens: ahead, until: now + LENT_MS });
    this.bucket = { ...bucket, tokens: bucket.tokens - ahead };
    return { retryAfterSeconds, ahead };
  }
}
