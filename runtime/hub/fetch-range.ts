import { AssayError } from '../../lib/errors.ts';
import { isFileError } from '../store/disk-error.ts';
import { chunksOf } from './chunks-of.ts';
import type { HubAccess } from './hub-access.ts';
import { HubRefusal } from './hub-error.ts';
import { hubFetch } from './hub-fetch.ts';
import type { PartialFile, Range } from './partial-file.ts';
import { backoff } from './retry.ts';

/** Consecutive attempts without progress before giving up. */
const FRUITLESS_ATTEMPTS = 5;

/** Reports that a server sent the whole file although a part of it was requested. */
export class RangesIgnored extends Error {}

export interface RangeOptions {
  signal: AbortSignal;
  /** Milliseconds without data after which a connection is closed and opened again. */
  stallMs: number;
  /** Receives the number of bytes that were just written. */
  onBytes(bytes: number): void;
}

/**
 * Downloads the missing bytes of a range and writes them to the file. A connection that is cut or stalls is resumed
 * where it ended. Only attempts without progress count against the limit.
 *
 * @throws `HubRefusal` or the network's error after the last attempt, or at once if another attempt cannot help;
 *   `RangesIgnored` if the server sends the whole file instead of the range; `AssayError` `hub_unreachable` for a
 *   refused redirect; the file system's error if the file cannot be written; the reason of `options.signal` if it
 *   aborts
 */
export async function fetchRange(
  hub: HubAccess,
  url: string,
  partial: PartialFile,
  range: Range,
  options: RangeOptions,
): Promise<void> {
  let fruitless = 0;
  while (range.next < range.end) {
    options.signal.throwIfAborted();
    const before = range.next;
    try {
      await fetchOnce(hub, url, partial, range, options);
      if (range.next < range.end) throw new Error('the connection ended early');
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof AssayError || error instanceof RangesIgnored || isFileError(error)) throw error;
      if (error instanceof HubRefusal && !error.temporary) throw error;
      fruitless = range.next > before ? 1 : fruitless + 1;
      if (fruitless > FRUITLESS_ATTEMPTS) throw error;
      const asked = error instanceof HubRefusal ? error.retryAfterMs : null;
      await hub.clock.sleep(Math.max(backoff(fruitless, hub.random()), asked ?? 0), options.signal);
    }
  }
}

async function fetchOnce(
  hub: HubAccess,
  url: string,
  partial: PartialFile,
  range: Range,
  options: RangeOptions,
): Promise<void> {
  const attempt = new AbortController();
  let lastByte = hub.clock.now();
  const watch = async (): Promise<void> => {
    while (!attempt.signal.aborted) {
      await hub.clock.sleep(options.stallMs / 4, attempt.signal);
      if (hub.clock.now() - lastByte > options.stallMs) attempt.abort(new Error('the connection stalled'));
    }
  };
  watch().catch(() => undefined);
  try {
    const response = await hubFetch(hub, url, {
      // Ranges are in bytes of the uncompressed file.
      headers: { range: `bytes=${range.next}-${range.end - 1}`, 'accept-encoding': 'identity' },
      signal: AbortSignal.any([options.signal, attempt.signal]),
    });
    if (!response.ok || !response.body) {
      await response.body?.cancel();
      throw new HubRefusal(response);
    }
    let skip = bytesBefore(response, range, partial.size);
    for await (const chunk of chunksOf(response)) {
      lastByte = hub.clock.now();
      const wanted = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - wanted.length;
      if (wanted.length === 0) continue;
      options.onBytes(await partial.write(range, wanted));
      lastByte = hub.clock.now();
      if (range.next === range.end) break;
    }
  } finally {
    attempt.abort();
  }
}

/**
 * Returns how many bytes the response contains before the missing ones: none, or all that precede them if the server
 * ignores `Range` and sends the whole file. Throws if the server sends a different range, and `RangesIgnored` if it
 * sends the whole file for a part of it.
 */
function bytesBefore(response: Response, range: Range, size: number): number {
  if (response.status === 206) {
    const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
    if (match && Number(match[1]) === range.next && (match[2] === '*' || Number(match[2]) === size)) return 0;
    throw new Error('the server sent other bytes than requested');
  }
  if (range.start > 0 || range.end < size) throw new RangesIgnored('the server ignores ranges');
  return range.next;
}
