import { open, rename, rm, stat } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import { chunksOf } from '../hub/chunks-of.ts';
import { backoff } from '../hub/retry.ts';
import { hashFile } from '../store/digest.ts';
import { isFileError } from '../store/disk-error.ts';
import type { Wheel } from './catalogue.ts';
import { findWheel, type IndexAccess, unreachable, type WheelOwner } from './python-index.ts';

export interface WheelAccess extends IndexAccess {
  clock: Clock;
  random(): number;
  onBytes(bytes: number, total: number): void;
}

/** Consecutive attempts without progress before giving up. */
const FRUITLESS_ATTEMPTS = 5;
/** Milliseconds without data after which a connection is closed. */
const STALL_MS = 30_000;

/**
 * Downloads a wheel to `file`, continuing an earlier attempt in `file.part`. The file gets its final name only if its
 * hash is right.
 *
 * @throws AssayError `hub_unreachable` if the registry does not answer or lacks the wheel; `invalid_value` for a
 *   malformed address of the registry; `engine_failed` if the content differs from the published one; the file system's
 *   error if the file cannot be written; the reason of `access.signal` if it aborts
 */
export async function fetchWheel(owner: WheelOwner, wheel: Wheel, file: string, access: WheelAccess): Promise<void> {
  const part = `${file}.part`;
  const { url, headers } = await findWheel(owner, wheel, access);
  let fruitless = 0;
  for (let at = await sizeOf(part); at < wheel.bytes; ) {
    access.signal.throwIfAborted();
    try {
      await continueFile(part, at, url, headers, wheel.bytes, access);
    } catch (error) {
      access.signal.throwIfAborted();
      if (error instanceof AssayError || isFileError(error)) throw error;
      const after = await sizeOf(part);
      fruitless = after > at ? 1 : fruitless + 1;
      if (fruitless > FRUITLESS_ATTEMPTS) throw unreachable(new URL(url), error);
      await access.clock.sleep(backoff(fruitless, access.random()), access.signal);
    }
    at = await sizeOf(part);
  }
  await checkWheel(part, wheel).catch(async (error: unknown) => {
    // A damaged file is removed, because continuing it would not repair it.
    await rm(part, { force: true });
    throw error;
  });
  await rename(part, file);
}

/** Throws `engine_failed` if a file's size or hash is not that of the wheel. */
export async function checkWheel(file: string, wheel: Wheel): Promise<void> {
  const size = await sizeOf(file);
  if (size === wheel.bytes && (await hashFile(file, size, wheel.sha256)) === wheel.sha256) return;
  throw new AssayError(
    'engine_failed',
    `The file is not ${wheel.file} as its vendor published it (sha256 ${wheel.sha256}). Fetch it again, from https://pypi.org or a mirror that you trust.`,
  );
}

async function continueFile(
  part: string,
  from: number,
  url: string,
  headers: Record<string, string>,
  total: number,
  access: WheelAccess,
): Promise<void> {
  const attempt = new AbortController();
  let timer = setTimeout(() => attempt.abort(new Error('the connection stalled')), STALL_MS);
  const alive = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt.abort(new Error('the connection stalled')), STALL_MS);
  };
  const signal = AbortSignal.any([access.signal, attempt.signal]);
  try {
    const range = from > 0 ? { range: `bytes=${from}-` } : {};
    const response = await access.fetch(url, {
      // Ranges are in bytes of the uncompressed file.
      headers: { ...headers, ...range, 'accept-encoding': 'identity' },
      signal,
    });
    if (!response.ok || !response.body) throw new Error(`${new URL(url).host} answered ${response.status}`);
    // A server that ignores the range sends the whole file.
    let at = response.status === 206 ? from : 0;
    const handle = await open(part, at > 0 ? 'r+' : 'w');
    try {
      for await (const chunk of chunksOf(response)) {
        alive();
        if (at + chunk.length > total) throw tooLong(url);
        await handle.write(chunk, 0, chunk.length, at);
        at += chunk.length;
        access.onBytes(at, total);
      }
    } finally {
      await handle.close();
    }
    if (at < total) throw new Error('the connection ended early');
  } finally {
    clearTimeout(timer);
  }
}

function tooLong(url: string): AssayError {
  const message = `${new URL(url).host} sends more bytes than the wheel has. Set PIP_INDEX_URL to a registry that you trust.`;
  return new AssayError('engine_failed', message);
}

async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}
