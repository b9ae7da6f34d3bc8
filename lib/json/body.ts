import { AssayError } from '../errors.ts';
import type { BodyShare } from './body-budget.ts';
import { type JsonValue, parseJson } from './parse.ts';

/** 20 MiB, as bytes read (open-points.md, part A, "Fields"). */
export const MAX_BODY_BYTES = 20 * 1024 * 1024;

export interface JsonBodyRules {
  maxBytes?: number;
  /** The model server wants a JSON content type on every body; the decision service only where one is sent. */
  contentType: 'required' | 'where sent';
  /** Where the room for the bytes comes from, before they are kept. */
  share: BodyShare;
}

/**
 * The JSON value in a request's body.
 *
 * @throws AssayError `unsupported_media_type`, `request_too_large`, `overloaded` or `malformed_json`, checked in this order.
 */
export async function readJson(request: Request, rules: JsonBodyRules): Promise<JsonValue> {
  const { contentType, share, maxBytes = MAX_BODY_BYTES } = rules;
  checkContentType(request.headers, contentType);
  return parseJson(await readBody(request, maxBytes, share));
}

/** Announced bytes up to which a body is read in one go, which is faster, and has its room before it has come. */
const AT_ONCE = 1024 * 1024;

/**
 * Nothing is kept of a body that says itself that it is too long. Up to twice the bound it is thrown away as it comes: who is still sending when the
 * connection closes may never see the answer (RFC 9112, 9.6). HTTP sees to it that no more comes than was announced; but it is a claim of the sender,
 * so the bytes are counted all the same, and the room for a large body is taken as it comes.
 */
async function readBody(request: Request, maxBytes: number, share: BodyShare): Promise<Uint8Array> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN);
  if (announced > maxBytes) {
    if (announced <= 2 * maxBytes) await throwAway(request);
    throw tooLarge(maxBytes);
  }
  if (!(announced <= AT_ONCE)) return readBytes(request.body, maxBytes, share);
  try {
    share.take(announced);
  } catch (error) {
    await throwAway(request);
    throw error;
  }
  const bytes = new Uint8Array(await request.arrayBuffer().catch(brokenOff));
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
  return bytes;
}

async function throwAway({ body }: Request): Promise<void> {
  await body?.pipeTo(new WritableStream()).catch(brokenOff);
}

/** JSON (WHATWG MIME Sniffing, "JSON MIME type": `application/json`, `text/json`, any `+json`), in UTF-8, not compressed. */
export function checkContentType(headers: Headers, rule: JsonBodyRules['contentType']): void {
  const type = headers.get('content-type');
  const encoding = headers.get('content-encoding');
  const json = type === null ? rule === 'where sent' : type === 'application/json' || isJsonType(type);
  if (json && (encoding === null || encoding.toLowerCase() === 'identity')) return;
  throw new AssayError(
    'unsupported_media_type',
    'Send the body as JSON in UTF-8, not compressed, with the header "Content-Type: application/json".',
  );
}

const JSON_TYPE = /^(application\/json|text\/json|[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json)$/;
const CHARSET = /^charset=(?!"?utf-?8"?$)/;

function isJsonType(contentType: string): boolean {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  return JSON_TYPE.test(type) && !parameters.some((parameter) => CHARSET.test(parameter));
}

/** Reads a stream to its end, and stops at the first byte too many. Where `share` has no room, the rest is thrown away as it comes. */
export async function readBytes(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  share?: BodyShare,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  let refused: unknown;
  const reader = stream?.getReader();
  while (reader) {
    const chunk = await reader.read().catch(brokenOff);
    if (chunk.done) break;
    total += chunk.value.byteLength;
    if (total > maxBytes) {
      // Not awaited: a sender that never stops must not hold the answer back.
      void reader.cancel().catch(() => {});
      throw tooLarge(maxBytes);
    }
    if (refused) continue;
    try {
      share?.take(chunk.value.byteLength);
      chunks.push(chunk.value);
    } catch (error) {
      refused = error;
      chunks.length = 0;
      share?.release();
    }
  }
  if (refused) throw refused;
  return chunks.length === 1 ? chunks[0]! : joined(chunks, total);
}

function brokenOff(cause: unknown): never {
  throw new AssayError('malformed_json', 'The body broke off before its end. Send it again.', { cause });
}

function tooLarge(maxBytes: number): AssayError {
  return new AssayError('request_too_large', `The body is longer than ${maxBytes} bytes. Send less in one request.`);
}

function joined(chunks: readonly Uint8Array[], total: number): Uint8Array {
  const bytes = new Uint8Array(total);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}
