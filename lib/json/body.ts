import { AssayError } from '../errors.ts';
import type { BodyShare } from './body-budget.ts';
import { boundaryOf, parseMultipart } from './multipart.ts';
import { type JsonValue, parseJson } from './parse.ts';

/** Maximum size of a body, 20 MiB, counted as it is read (docs/interface.md, D-10). */
export const MAX_BODY_BYTES = 20 * 1024 * 1024;

export interface BodyLimits {
  /** Maximum size of the body in bytes; `MAX_BODY_BYTES` by default. */
  maxBytes?: number;
  /** Maximum number of members and items; `MAX_PARTS` by default. */
  maxParts?: number;
}

export interface JsonBodyRules extends BodyLimits {
  /**
   * `required` for the model server, which needs a JSON `Content-Type` on every body. `optional` for the decision
   * service, which checks the header only if it is sent.
   */
  contentType: 'required' | 'optional';
  /** Accepts `multipart/form-data` with the JSON and its assets, too (`parseMultipart`). */
  multipart?: boolean;
  /** Share of the memory budget in which the bytes of the body are reserved, as they are after decoding. */
  share: BodyShare;
  /** The content encodings that are decoded; `STANDARD_DECODERS` by default. */
  decoders?: BodyDecoders;
  /** Resolves when a large body may be parsed or validated, which keeps the thread busy; at once if absent. */
  turn?: (() => Promise<void>) | undefined;
}

/** Functions that create a decoder, by the name of the content encoding in lower case (RFC 9110, section 8.4.1). */
export type BodyDecoders = Readonly<Record<string, () => ReadableWritablePair<Uint8Array, Uint8Array>>>;

/** The content encodings that every host can decode with web standards. */
export const STANDARD_DECODERS: BodyDecoders = {
  gzip: () => new DecompressionStream('gzip') as ReadableWritablePair<Uint8Array, Uint8Array>,
  deflate: () => new DecompressionStream('deflate') as ReadableWritablePair<Uint8Array, Uint8Array>,
};

/**
 * Largest ratio of a decoded body to its compressed bytes, beyond `FREE_OF_RATIO` decoded bytes. JSON rarely shrinks to
 * a twentieth; a bomb unpacks to a thousand times its size, and is refused long before `maxBytes`.
 */
const MOST_RATIO = 256;
const FREE_OF_RATIO = 1024 * 1024;

/**
 * Largest `Content-Length` in bytes for which a body is read in one call, which is faster, and its bytes are reserved
 * before they arrive. A longer body is parsed and validated in two turns.
 */
const LARGE = 1024 * 1024;
/** Bytes of a body that is parsed and validated at once, in half a millisecond; longer ones wait for turns. */
const SMALL = 16 * 1024;

/**
 * Reads the JSON value of a request's body.
 *
 * @throws AssayError `unsupported_media_type` for another content type; `request_too_large` for more than `maxBytes`;
 *   `overloaded` if the budget of `share` is used up; `malformed_json` if the body breaks off; otherwise the error of
 *   `parseJson` or `parseMultipart` for bytes that they refuse
 */
export async function readJson(request: Request, rules: JsonBodyRules): Promise<JsonValue> {
  const boundary = rules.multipart ? boundaryOf(request.headers.get('content-type')) : undefined;
  if (boundary === undefined) checkContentType(request.headers, rules.contentType);
  const bytes = await readBody(request, rules);
  if (bytes.byteLength > SMALL) await rules.turn?.();
  const { maxParts } = rules;
  const value = boundary === undefined ? parseJson(bytes, maxParts) : parseMultipart(bytes, boundary, maxParts);
  // To validate the value may take as long again.
  if (bytes.byteLength > LARGE) await rules.turn?.();
  return value;
}

/**
 * Reads the bytes of a body, decoded, of at most `maxBytes`; throws as `readJson` does. A body whose `Content-Length`
 * is larger is refused. If it is at most twice as large, the body is first read and discarded: a client that is still
 * sending when the connection closes may never see the answer (RFC 9112, section 9.6). `Content-Length` is only the
 * sender's claim, so the bytes are counted all the same, and those of a large body are reserved as they arrive.
 */
export async function readBody(
  request: Request,
  rules: Omit<JsonBodyRules, 'contentType' | 'multipart' | 'turn'>,
): Promise<Uint8Array> {
  const { share, decoders = STANDARD_DECODERS, maxBytes = MAX_BODY_BYTES } = rules;
  const decoder = decoderFor(request.headers, decoders);
  const announced = Number(request.headers.get('content-length') ?? Number.NaN);
  if (announced > maxBytes) {
    if (announced <= 2 * maxBytes) await throwAway(request);
    throw tooLarge(maxBytes);
  }
  if (decoder) return request.body ? readBytes(decoded(request.body, decoder()), maxBytes, share) : new Uint8Array();
  if (!(announced <= LARGE)) return readBytes(request.body, maxBytes, share);
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

/** Returns the decoder for the content encoding of a body; undefined if it has none. */
function decoderFor(headers: Headers, decoders: BodyDecoders): BodyDecoders[string] | undefined {
  const sent = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (sent === 'identity' || sent === '') return undefined;
  const name = sent === 'x-gzip' ? 'gzip' : sent;
  if (Object.hasOwn(decoders, name)) return decoders[name];
  throw new AssayError(
    'unsupported_media_type',
    `The content encoding ${/^[\w-]{1,20}$/.test(sent) ? sent : 'of this body'} is not known. Send the body with one of ` +
      `${Object.keys(decoders).join(', ')}, or not compressed.`,
  );
}

/** Decodes a body, and refuses to unpack a bomb (`MOST_RATIO`). */
function decoded(
  body: ReadableStream<Uint8Array>,
  decoder: ReadableWritablePair<Uint8Array, Uint8Array>,
): ReadableStream<Uint8Array> {
  let packed = 0;
  let unpacked = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      packed += chunk.byteLength;
      controller.enqueue(chunk);
    },
  });
  const guarding = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      unpacked += chunk.byteLength;
      if (unpacked > FREE_OF_RATIO && unpacked > MOST_RATIO * packed) {
        throw new AssayError(
          'request_too_large',
          `The body unpacks to more than ${MOST_RATIO} times its size. Send it less compressed, or not compressed.`,
        );
      }
      controller.enqueue(chunk);
    },
  });
  return body.pipeThrough(counting).pipeThrough(decoder).pipeThrough(guarding);
}

async function throwAway({ body }: Request): Promise<void> {
  await body?.pipeTo(new WritableStream()).catch(brokenOff);
}

/**
 * Checks that the headers describe JSON in UTF-8. JSON types are `application/json`, `text/json` and any
 * `+json` (WHATWG MIME Sniffing, "JSON MIME type"). A missing `Content-Type` is allowed only
 * if `rule` is `optional`.
 *
 * @throws AssayError `unsupported_media_type`
 */
export function checkContentType(headers: Headers, rule: JsonBodyRules['contentType']): void {
  const type = headers.get('content-type');
  const json = type === null ? rule === 'optional' : type === 'application/json' || isJsonType(type);
  if (json) return;
  throw new AssayError(
    'unsupported_media_type',
    'Send the body as JSON in UTF-8, with the header "Content-Type: application/json".',
  );
}

const JSON_TYPE = /^(application\/json|text\/json|[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json)$/;
const CHARSET = /^charset=(?!"?utf-?8"?$)/;

function isJsonType(contentType: string): boolean {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  return JSON_TYPE.test(type) && !parameters.some((parameter) => CHARSET.test(parameter));
}

/**
 * Reads a stream to its end; null is an empty body.
 *
 * @throws AssayError `request_too_large` at the first byte beyond `maxBytes`; `overloaded` if the budget of `share` is
 *   used up, after the rest was read and discarded; `malformed_json` if the stream breaks off
 */
export async function readBytes(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  share?: BodyShare,
): Promise<Uint8Array> {
  const bytes = new BodyBytes();
  let total = 0;
  let refused: unknown;
  const reader = stream?.getReader();
  while (reader) {
    const chunk = await reader.read().catch(brokenOff);
    if (chunk.done) break;
    total += chunk.value.byteLength;
    if (total > maxBytes) {
      // Not awaited, because a sender that never stops must not delay the answer.
      void reader.cancel().catch(() => {});
      throw tooLarge(maxBytes);
    }
    if (refused) continue;
    try {
      share?.take(chunk.value.byteLength);
      bytes.push(chunk.value);
    } catch (error) {
      refused = error;
      bytes.clear();
      share?.release();
    }
  }
  if (refused) throw refused;
  return bytes.joined();
}

function brokenOff(cause: unknown): never {
  if (cause instanceof AssayError) throw cause;
  const message =
    'The body broke off before its end, or is not compressed as its Content-Encoding says. Send it again.';
  throw new AssayError('malformed_json', message, { cause });
}

function tooLarge(maxBytes: number): AssayError {
  return new AssayError('request_too_large', `The body is longer than ${maxBytes} bytes. Send less in one request.`);
}

/**
 * Chunks shorter than this are copied into one buffer. A chunk object takes about 100 bytes of memory, so a body in
 * chunks of one byte would take a hundred times the bytes that its budget counts.
 */
const COPIED_BELOW = 8 * 1024;
const BUFFER_BYTES = 16 * 1024;

/** Collects the bytes of a body. Its memory is proportional to their number, however short the chunks are. */
export class BodyBytes {
  #pieces: Uint8Array[] = [];
  #total = 0;
  /** Copies of the latest short chunks: `#used` bytes of `#buffer`. */
  #buffer: Uint8Array | undefined;
  #used = 0;

  /** Adds the next chunk. The caller must not change it afterwards, because a large one is not copied. */
  push(chunk: Uint8Array): void {
    this.#total += chunk.byteLength;
    if (chunk.byteLength >= COPIED_BELOW) {
      this.#keepBuffered();
      this.#pieces.push(chunk);
      return;
    }
    this.#buffer ??= new Uint8Array(BUFFER_BYTES);
    if (this.#used + chunk.byteLength > BUFFER_BYTES) this.#keepBuffered();
    this.#buffer.set(chunk, this.#used);
    this.#used += chunk.byteLength;
  }

  /** Returns all bytes in order. A single large chunk is returned itself, not as a copy. */
  joined(): Uint8Array {
    this.#keepBuffered();
    const [only] = this.#pieces;
    if (only && this.#pieces.length === 1) return only;
    const bytes = new Uint8Array(this.#total);
    let at = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, at);
      at += piece.byteLength;
    }
    return bytes;
  }

  /** Drops all bytes. */
  clear(): void {
    this.#pieces = [];
    this.#buffer = undefined;
    this.#total = this.#used = 0;
  }

  #keepBuffered(): void {
    if (this.#buffer && this.#used > 0) this.#pieces.push(this.#buffer.slice(0, this.#used));
    this.#used = 0;
  }
}
