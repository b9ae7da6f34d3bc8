import { AssayError } from '../errors.ts';
import { hasLoneSurrogate, MAX_DEPTH, MAX_PARTS, outlineOf } from './scan.ts';
import { parseAsWritten } from './written-numbers.ts';

/** Represents a value as `JSON.parse` returns it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** Decodes UTF-8 without a leading byte order mark; throws on invalid bytes. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses untrusted JSON in UTF-8. If a name is repeated, the last value counts. Numbers too large for a double become
 * `Infinity`, which every schema refuses. How numbers are written is noted (`writtenNumber`).
 *
 * @throws AssayError `malformed_json` for no bytes, bytes that are not UTF-8, more than 64 nested objects and arrays,
 *   half a surrogate pair, or a syntax error; `request_too_large` for more than `maxParts` members and items
 */
export function parseJson(bytes: Uint8Array, maxParts = MAX_PARTS): JsonValue {
  const { text, hasDigits } = checked(bytes, maxParts);
  try {
    const value = hasDigits ? parseAsWritten(text) : JSON.parse(text);
    if (typeof value === 'object' && value !== null) sources.set(value, text);
    return value;
  } catch (cause) {
    throw malformed(`The body is not valid JSON${place(cause)}. Check its quotes, commas and brackets.`, cause);
  }
}

/** Texts of parsed objects and lists. */
const sources = new WeakMap<object, string>();

/**
 * Returns the JSON text from which `parseJson` read an object or list; undefined for a value that it did not return.
 * The text keeps what the value loses: 1.0 is not 1, and a member named `10` keeps its place.
 */
export function sourceText(value: JsonValue): string | undefined {
  return typeof value === 'object' && value !== null ? sources.get(value) : undefined;
}

/** Decodes a body and checks its limits. Returns its text, whose syntax is not checked, and whether it may
 * have digits that a value does not show as written. */
function checked(bytes: Uint8Array, maxParts: number): { text: string; hasDigits: boolean } {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const text = decode(bytes);
  const { excess, hasDigits } = outlineOf(text, maxParts);
  if (excess === 'parts') {
    throw new AssayError(
      'request_too_large',
      `The body has more than ${maxParts} members and items. Send less in one request.`,
    );
  }
  if (excess === 'depth') {
    throw malformed(`The body nests objects and arrays more than ${MAX_DEPTH} deep. Flatten it.`);
  }
  if (hasLoneSurrogate(text)) {
    throw malformed(
      'The body escapes half of a surrogate pair (such as \\ud83d alone), which is not text. Send whole pairs.',
    );
  }
  return { text, hasDigits };
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw malformed('The body is not valid UTF-8. Encode it as UTF-8.', cause);
  }
}

/**
 * Returns the position of a syntax error in words, as V8 reports it; an empty string if it is unknown. The rest of V8's
 * message is not used, because it quotes the body.
 */
function place(cause: unknown): string {
  const found = cause instanceof SyntaxError ? /line (\d+) column (\d+)/.exec(cause.message) : null;
  return found ? ` (line ${found[1]}, column ${found[2]})` : '';
}

function malformed(message: string, cause?: unknown): AssayError {
  return new AssayError('malformed_json', message, { cause });
}
