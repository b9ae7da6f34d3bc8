import type { Socket } from 'node:net';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type TokenBucket, takeToken } from '../../lib/limits/token-bucket.ts';
import { addressOf } from './connections.ts';

/** Refusals for want of a valid key that an address gets at once, each minute. */
export const FREE_PER_MINUTE = 60;
const LONGEST_MS = 10_000;
/** Addresses that are remembered; the one that was refused longest ago is forgotten first. */
const MOST_ADDRESSES = 4096;

/** Describes what `getRequestListener` passes beside a request. */
interface Origin {
  incoming?: { socket: Pick<Socket, 'remoteAddress'> };
}
type Fetch = (request: Request, origin?: Origin) => Response | Promise<Response>;

/**
 * Returns `fetch` with its refusals of keys (401) held back where an address gets many of them: by a second for each
 * one that is held back already. Other answers are not delayed, so callers behind the same proxy are not harmed.
 */
export function slowGuesses(fetch: Fetch, clock: Clock = systemClock): Fetch {
  const buckets = new Map<string, TokenBucket>();
  const held = new Map<string, number>();
  return async (request, origin) => {
    const response = await fetch(request, origin);
    if (response.status !== 401 || !origin?.incoming) return response;
    const address = addressOf(origin.incoming.socket);
    const { bucket, retryAfterSeconds } = takeToken(buckets.get(address), FREE_PER_MINUTE, clock.now());
    buckets.delete(address);
    buckets.set(address, bucket);
    for (const oldest of buckets.keys()) {
      if (buckets.size <= MOST_ADDRESSES) break;
      buckets.delete(oldest);
    }
    if (retryAfterSeconds === null) return response;
    const others = held.get(address) ?? 0;
    held.set(address, others + 1);
    await clock.sleep(Math.min(LONGEST_MS, 1000 * (others + 1)), request.signal);
    const left = (held.get(address) ?? 1) - 1;
    if (left === 0) held.delete(address);
    else held.set(address, left);
    return response;
  };
}
