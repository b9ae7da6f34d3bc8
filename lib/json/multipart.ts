import { AssayError } from '../errors.ts';
import { pathTo } from '../param-path.ts';
import { type JsonValue, parseJson } from './parse.ts';
import { isObject } from './property.ts';

/*
 * Bodies of `multipart/form-data`, as TypeSafe's SDK sends images: the JSON in the part `request`, whose `assets` name
 * the parts with their bytes. The platform's `formData()` takes seconds for a body of many small parts, so the parts
 * are found here, in one pass and at most `MOST_PARTS` of them.
 */

/** The JSON, and as many images as any model reads. */
const MOST_PARTS = 65;
const MOST_HEADER_BYTES = 4096;

interface BodyPart {
  type: string;
  bytes: Uint8Array;
}

/** Returns the boundary of a content type `multipart/form-data`; undefined for any other. */
export function boundaryOf(contentType: string | null): string | undefined {
  const found = /^\s*multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))\s*(?:;|$)/i.exec(
    contentType ?? '',
  );
  return found?.[1] ?? found?.[2];
}

/**
 * Parses a body of `multipart/form-data`: the JSON value of its part `request`, in which each asset with a `part` has
 * the bytes of that part as `base64`, and its `content_type` if that is an image.
 *
 * @throws AssayError `malformed_json` if the body has another form; `invalid_value` if assets and parts do not match;
 *   `request_too_large` for too many parts; the errors of `parseJson`
 */
export function parseMultipart(bytes: Uint8Array, boundary: string, maxParts?: number): JsonValue {
  const parts = partsOf(bytes, boundary);
  const request = parts.get('request');
  if (!request) throw malformed('has no part named request, with the JSON');
  parts.delete('request');
  const json = parseJson(request.bytes, maxParts);
  const assets: unknown = isObject(json) && Object.hasOwn(json, 'assets') ? json.assets : {};
  for (const [name, asset] of Object.entries(isObject(assets) ? assets : {})) {
    if (!isObject(asset) || typeof asset.part !== 'string') continue;
    const path = pathTo(pathTo('assets', name), 'part');
    const part = parts.get(asset.part);
    if (!part) throw invalid(path, 'names no part of the body that another asset does not name, too');
    parts.delete(asset.part);
    Object.assign(asset, {
      base64: base64(part.bytes),
      ...(part.type.startsWith('image/') ? { content_type: part.type } : {}),
    });
  }
  if (parts.size > 0) throw invalid('assets', 'must name every part of the body but request');
  return json;
}

/** Finds the parts between the lines with the boundary (RFC 2046, section 5.1.1), by name. */
function partsOf(bytes: Uint8Array, boundary: string): Map<string, BodyPart> {
  const delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  const parts = new Map<string, BodyPart>();
  // The first line has no line before it.
  let start = startsWith(bytes, 0, delimiter.subarray(2)) ? delimiter.length - 2 : next(bytes, 0, delimiter).after;
  while (!startsWith(bytes, start, DASHES)) {
    const lineEnd = endOfPadding(bytes, start);
    if (!startsWith(bytes, lineEnd, CRLF)) throw malformed('has no end, or another boundary than its header says');
    if (parts.size === MOST_PARTS) {
      throw new AssayError('request_too_large', `The body has more than ${MOST_PARTS} parts. Send fewer images.`);
    }
    const { at, after } = next(bytes, lineEnd + CRLF.length, delimiter);
    const { name, ...part } = partOf(bytes.subarray(lineEnd, at));
    if (parts.has(name)) throw malformed('has two parts of the same name');
    parts.set(name, part);
    start = after;
  }
  return parts;
}

const encoded = (text: string) => new TextEncoder().encode(text);
const DASHES = encoded('--');
const CRLF = encoded('\r\n');
const HEADERS_END = encoded('\r\n\r\n');

/** Returns where the next delimiter begins and ends; its end is that of the bytes if there is none. */
function next(bytes: Uint8Array, from: number, delimiter: Uint8Array): { at: number; after: number } {
  // No other byte of a delimiter is a CR, so a match that fails cannot hide the next one.
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === 0x0d && startsWith(bytes, at, delimiter)) return { at, after: at + delimiter.length };
  }
  throw malformed('has no end, or another boundary than its header says');
}

function startsWith(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  // Not `every`, which calls a function for each CR of a body.
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

function endOfPadding(bytes: Uint8Array, start: number): number {
  let at = start;
  while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
  return at;
}

/** Reads a part from the line end before its headers on. */
function partOf(bytes: Uint8Array): BodyPart & { name: string } {
  const most = Math.min(bytes.length, MOST_HEADER_BYTES);
  let end = 0;
  while (end < most && !startsWith(bytes, end, HEADERS_END)) end++;
  if (end === most) throw malformed('has a part without headers, or with long ones');
  const headers = new Map(
    new TextDecoder()
      .decode(bytes.subarray(0, end))
      .split('\r\n')
      .map(
        (line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()] as const,
      ),
  );
  const [, quoted, bare] =
    /^form-data\s*;(?:.*;)?\s*name=(?:"([^"]*)"|([^\s";]+))/i.exec(headers.get('content-disposition') ?? '') ?? [];
  const name = quoted ?? bare;
  if (name === undefined) throw malformed('has a part without a name');
  if (headers.has('content-transfer-encoding')) throw malformed('has a part with a transfer encoding; send its bytes');
  return { name, type: headers.get('content-type') ?? '', bytes: bytes.subarray(end + HEADERS_END.length) };
}

const DIGITS = encoded('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');

/** Encodes bytes as base64 (RFC 4648). `btoa` takes a string, and takes seconds with the one of a large body. */
function base64(bytes: Uint8Array): string {
  const digits = new Uint8Array(4 * Math.ceil(bytes.length / 3)).fill(0x3d);
  let to = 0;
  for (let at = 0; at < bytes.length; at += 3) {
    const left = Math.min(3, bytes.length - at);
    const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let i = 0; i <= left; i++) digits[to + i] = DIGITS[(three >> (18 - 6 * i)) & 63] ?? 0;
    to += 4;
  }
  return new TextDecoder().decode(digits);
}

function malformed(what: string): AssayError {
  return new AssayError('malformed_json', `The body is not multipart/form-data that can be read: it ${what}.`);
}

function invalid(param: string, message: string): AssayError {
  return new AssayError('invalid_value', `${param} ${message}.`, { param });
}
