import { open, rename, rm, stat } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import { backoff } from '../hub/hub-error.ts';
import { chunksOf } from '../hub/hub-fetch.ts';
import { hashFile } from '../store/digest.ts';
import { isFileError } from '../store/disk-error.ts';
import type { Wheel } from './catalogue.ts';

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

/** Registry that pip uses by default. */
const DEFAULT_INDEX = 'https://pypi.org/simple';
/** Maximum bytes of a package's page in the registry. A page with all versions has about 100 kB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

export interface IndexAccess {
  fetch(url: string, init: RequestInit): Promise<Response>;
  /**
   * Base URL of a mirror with the same layout (`PIP_INDEX_URL`). If empty or absent, the Python Package Index is used.
   */
  index?: string | undefined;
  signal: AbortSignal;
}

/**
 * Holds the URL of a wheel, with the headers to send. Name and password in the mirror's URL are sent only to that
 * mirror.
 */
interface WheelRequest {
  url: string;
  headers: Record<string, string>;
}

/** Names the package of a wheel in the registry, and the plugin that needs it, for messages. */
interface WheelOwner {
  plugin: string;
  package: string;
}

/**
 * Looks up the URL of a wheel in the Python registry, whose answer may be JSON (PEP 691) or HTML (PEP 503). The answer
 * need not be trusted, because the wheel's hash is known. Throws `hub_unreachable` if the registry does not answer or
 * lacks the wheel, `invalid_value` for a malformed address of the registry, and the reason of `access.signal` if that
 * aborts.
 */
export async function findWheel(owner: WheelOwner, wheel: Wheel, access: IndexAccess): Promise<WheelRequest> {
  const base = parseIndex(access.index || DEFAULT_INDEX);
  const page = new URL(`${owner.package}/`, base.url);
  const response = await access
    .fetch(page.href, {
      headers: { ...base.headers, accept: 'application/vnd.pypi.simple.v1+json, text/html;q=0.5' },
      signal: access.signal,
    })
    .catch((cause: unknown) => {
      access.signal.throwIfAborted();
      throw unreachable(base.url, cause);
    });
  if (!response.ok) throw unreachable(base.url, new Error(`it answered ${response.status}`));
  const text = await readBounded(response);
  const json = response.headers.get('content-type')?.includes('json') ?? false;
  const found = json ? inJson(text, wheel.file) : inHtml(text, wheel.file);
  if (!found) {
    throw new AssayError(
      'hub_unreachable',
      `${base.url.host} has no ${wheel.file}. Set PIP_INDEX_URL to a mirror that has it, or fetch the file elsewhere and run: assay ep install ${owner.plugin} --file ${wheel.file}`,
    );
  }
  const url = new URL(found, response.url || page);
  return { url: url.href, headers: url.origin === base.url.origin ? base.headers : {} };
}

function parseIndex(index: string): { url: URL; headers: Record<string, string> } {
  const url = URL.parse(index.endsWith('/') ? index : `${index}/`);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new AssayError(
      'invalid_value',
      'PIP_INDEX_URL is not the address of a Python registry. Set one such as https://pypi.org/simple.',
    );
  }
  const { username, password } = url;
  // `fetch` rejects a URL that contains a user name.
  url.username = '';
  url.password = '';
  if (!username) return { url, headers: {} };
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { url, headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } };
}

/** Decodes the name or the password of a URL. Throws `invalid_value` for a `%` that is not part of an escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    const message = 'PIP_INDEX_URL has a % in its name or password that is not an escape. Write %25 for it.';
    throw new AssayError('invalid_value', message, { cause });
  }
}

function inJson(text: string, file: string): string | undefined {
  try {
    // A cast: every member is checked below.
    const page = JSON.parse(text) as { files?: { filename?: unknown; url?: unknown }[] };
    const entry = page.files?.find(({ filename }) => filename === file);
    return typeof entry?.url === 'string' ? entry.url : undefined;
  } catch {
    return undefined;
  }
}

function inHtml(text: string, file: string): string | undefined {
  const escaped = file.replaceAll('.', '\\.');
  const link = new RegExp(`href\\s*=\\s*["']([^"']*${escaped}(?:#[^"']*)?)["']`, 'i').exec(text);
  return link?.[1]?.replaceAll('&amp;', '&');
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length;
    if (bytes > MAX_PAGE_BYTES) throw unreachable(new URL(response.url), new Error('its page is too long'));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Returns `hub_unreachable` for a server of Python packages that does not answer, or sends an unusable answer. `cause`
 * is for the log.
 */
function unreachable(url: URL, cause: unknown): AssayError {
  return new AssayError(
    'hub_unreachable',
    `The Python registry at ${url.host} cannot be reached. Check the network, the proxy and PIP_INDEX_URL, then run the command again. It continues where it stopped.`,
    { cause },
  );
}
