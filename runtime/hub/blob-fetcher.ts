import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { hashFile } from '../store/digest.ts';
import { isFileError } from '../store/disk-error.ts';
import { isFlocked } from '../store/lock.ts';
import type { HubFile } from './hub-client.ts';
import { backoff, HubRefusal } from './hub-error.ts';
import { chunksOf, hubFetch } from './hub-fetch.ts';
import { PartialFile, type Range } from './partial-file.ts';
import type { HubAccess, PullContext, PullOptions } from './pull-context.ts';

const POLL_MS = 500;

/** Downloads the blobs of one model in parallel ranges. Verifies each file before it gets its final name. */
export class BlobFetcher {
  /** Number of bytes received over the network. */
  fetchedBytes = 0;
  readonly #context: PullContext;
  readonly #model: ModelId;
  readonly #commit: string;
  readonly #options: PullOptions;
  readonly #connections: Limiter;
  #doneBytes = 0;
  #totalBytes = 0;

  constructor(context: PullContext, model: ModelId, commit: string, options: PullOptions) {
    this.#context = context;
    this.#model = model;
    this.#commit = commit;
    this.#options = options;
    this.#connections = new Limiter(context.settings.connections);
  }

  /**
   * Verifies the blobs of `files` that are in the hub cache, and removes damaged ones. Returns the files whose blobs
   * must be downloaded.
   */
  async verifyExisting(files: readonly HubFile[]): Promise<HubFile[]> {
    const { fs, paths } = this.#context;
    const missing: HubFile[] = [];
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let checked = 0;
    for (const file of files) {
      const blob = paths.blob(this.#model, file.hash);
      const there = await paths.real(blob);
      if (there && (await this.#isIntact(file, there, (bytes) => this.#verifying(file, checked + bytes, total)))) {
        checked += file.size;
        // A partial file may remain from an attempt that died right after its last rename, or from before another tool
        // downloaded the file.
        await this.#removePartial(file);
        continue;
      }
      // Recursive, because a folder may be in the place of the file.
      await fs.rm(blob, { force: true, recursive: true });
      missing.push(file);
    }
    return missing;
  }

  /**
   * Downloads the given files. Removes and downloads a damaged file once more.
   *
   * @param bytes bytes of all files of the model (`total`) and of those already present (`done`), for the progress
   * @throws AssayError `hub_unreachable` if a file arrives damaged twice; otherwise what `fetchRange` throws, except
   *   `RangesIgnored`: the whole file is then downloaded at once
   */
  async fetchMissing(files: readonly HubFile[], bytes: { done: number; total: number }): Promise<void> {
    this.#totalBytes = bytes.total;
    this.#doneBytes = bytes.done;
    // Small files first: they are quick to download, and a wrong one is noticed early.
    const ordered = [...files].sort((a, b) => a.size - b.size);
    const open = new Limiter(this.#context.settings.connections);
    const calls = ordered.map((file) => (signal: AbortSignal) => open.run(() => this.#fetchFile(file, signal)));
    await allOrAbort(calls, this.#options.signal);
  }

  async #fetchFile(file: HubFile, signal: AbortSignal): Promise<void> {
    const { fs, paths } = this.#context;
    const partial = this.#partialNames(file);
    if (await this.#otherToolFetches(file, signal)) return this.#removePartial(file);
    for (let tries = 1; ; tries += 1) {
      signal.throwIfAborted();
      await this.#fetchRanges(file, signal);
      // Verifying is only shown once no other file is downloading.
      const shown = (bytes: number) => this.#doneBytes === this.#totalBytes && this.#verifying(file, bytes, file.size);
      if (await this.#isIntact(file, partial.data, shown)) break;
      // It is unknown which bytes are wrong, so all are removed. One more attempt is made, because a damaged journal or
      // a passing fault has the same symptom.
      await this.#removePartial(file);
      this.#doneBytes -= file.size;
      if (tries === 2) throw damaged(this.#model, file);
    }
    await fs.rename(partial.data, paths.blob(this.#model, file.hash));
    await this.#removePartial(file);
  }

  #partialNames({ hash }: HubFile): { data: string; journal: string } {
    const { paths } = this.#context;
    return { data: paths.partialBlob(this.#model, hash), journal: paths.partialJournal(this.#model, hash) };
  }

  async #removePartial(file: HubFile): Promise<void> {
    const { fs } = this.#context;
    const { data, journal } = this.#partialNames(file);
    // The journal first: without its data file it would list missing bytes as present.
    await fs.rm(journal, { force: true });
    await fs.rm(data, { force: true });
  }

  async #fetchRanges(file: HubFile, signal: AbortSignal): Promise<void> {
    const { hub, fs, settings } = this.#context;
    const partial = await PartialFile.open(fs, this.#partialNames(file), file.size, settings.rangeBytes);
    this.#advance(file, partial.written);
    const url = `${hub.endpoint}/${this.#model}/resolve/${this.#commit}/${file.path.split('/').map(encodeURIComponent).join('/')}`;
    const onBytes = (bytes: number): void => {
      this.fetchedBytes += bytes;
      this.#advance(file, bytes);
    };
    const fetchOne = (range: Range, ended: AbortSignal) =>
      this.#connections.run(() => {
        ended.throwIfAborted();
        return fetchRange(hub, url, partial, range, { signal: ended, stallMs: settings.stallMs, onBytes });
      });
    const missing = partial.ranges.filter((range) => range.next < range.end);
    try {
      await allOrAbort(
        missing.map((range) => (ended) => fetchOne(range, ended)),
        signal,
      ).catch((error: unknown) => {
        if (!(error instanceof RangesIgnored)) throw error;
        // Otherwise the whole file would be received once for each range.
        return fetchOne(partial.whole(), signal);
      });
    } finally {
      await partial.close();
      // If nothing was received, as for a gated model, no file remains.
      if (partial.written === 0 && file.size > 0) await this.#removePartial(file);
    }
  }

  /**
   * Waits while a Python tool downloads the same file (it holds the file's lock). Returns true if the file is then
   * complete and intact.
   */
  async #otherToolFetches(file: HubFile, signal: AbortSignal): Promise<boolean> {
    const { hub, paths } = this.#context;
    const lockFile = paths.blobLock(this.#model, file.hash);
    if (!(await isFlocked(lockFile))) return false;
    const waiting = { stage: 'downloading', step: 'another tool is fetching it', file: file.path } as const;
    while (await isFlocked(lockFile)) {
      this.#options.onProgress({ ...waiting, bytes: this.#doneBytes, total: this.#totalBytes });
      await hub.clock.sleep(POLL_MS, signal);
      signal.throwIfAborted();
    }
    const blob = await paths.real(paths.blob(this.#model, file.hash));
    if (!blob || !(await this.#isIntact(file, blob, () => undefined))) return false;
    this.#advance(file, file.size);
    return true;
  }

  async #isIntact(file: HubFile, path: string, onBytes: (bytes: number) => unknown): Promise<boolean> {
    const { signal } = this.#options;
    if ((await this.#context.fs.stat(path)).size !== file.size) return false;
    return (await hashFile(path, file.size, file.hash, { signal, onBytes })) === file.hash;
  }

  #advance(file: HubFile, bytes: number): void {
    this.#doneBytes += bytes;
    const { path } = file;
    this.#options.onProgress({ stage: 'downloading', bytes: this.#doneBytes, total: this.#totalBytes, file: path });
  }

  #verifying(file: HubFile, bytes: number, total: number): void {
    this.#options.onProgress({ stage: 'verifying', bytes, total, file: file.path });
  }
}

function damaged(model: ModelId, file: HubFile): AssayError {
  return new AssayError(
    'hub_unreachable',
    `${file.path} of ${model} arrived damaged twice: its ${file.hash.length === 64 ? 'sha256' : 'git sha1'} is not ${file.hash}. Nothing of it was kept. Pull again. If that fails, check whether a proxy between you and the hub changes the bytes.`,
  );
}

/** Runs at most `count` calls at the same time. Further calls wait in order. */
class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/**
 * Runs all calls at the same time. If one fails, aborts the others, waits until they have ended, because they may still
 * be writing, and throws the first error.
 */
async function allOrAbort(
  calls: readonly ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const controller = new AbortController();
  const both = AbortSignal.any([signal, controller.signal]);
  let failure: { error: unknown } | null = null;
  await Promise.all(
    calls.map(async (call) => {
      try {
        both.throwIfAborted();
        await call(both);
      } catch (error) {
        failure ??= { error };
        controller.abort();
      }
    }),
  );
  // A cast: TypeScript does not see the assignment inside the callback.
  if (failure) throw (failure as { error: unknown }).error;
}

/** Consecutive attempts without progress before giving up. */
const FRUITLESS_ATTEMPTS = 5;

/** Reports that a server sent the whole file although a part of it was requested. */
class RangesIgnored extends Error {}

interface RangeOptions {
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
async function fetchRange(
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
