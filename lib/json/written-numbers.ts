/** Whole numbers that a double changes, as the request wrote them, by the object or list that contains them. */
const written = new WeakMap<object, Map<string, string>>();

/** Matches texts that may have a whole number beyond 2^53, which has at least 16 digits. */
const LONG_NUMBER = /\d{16}/;
const WHOLE = /^-?\d+$/;

/** Describes the third parameter of the function that `JSON.parse` calls for each value (ES2026). */
interface Written {
  source?: string;
}

/**
 * Parses JSON as `JSON.parse` does, and notes the digits of whole numbers beyond 2^53: 9007199254740993 becomes the
 * number 9007199254740992, which as an id is another one. `writtenNumber` returns the noted digits.
 */
export function parseNotingNumbers(text: string): ReturnType<typeof JSON.parse> {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  // A cast: TypeScript's types lack the third parameter.
  return JSON.parse(text, note as (this: object, key: string, value: unknown) => unknown);
}

function note(this: object, key: string, value: unknown, { source }: Written = {}): unknown {
  if (typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && WHOLE.test(source)) {
    const numbers = written.get(this) ?? new Map<string, string>();
    written.set(this, numbers.set(key, source));
  }
  return value;
}

/**
 * Returns the digits with which the request wrote a whole number beyond 2^53; undefined for any other value.
 *
 * @param holder the object or list that contains the number under `key`
 */
export function writtenNumber(holder: object, key: string): string | undefined {
  return written.get(holder)?.get(key);
}

/** Formats a value as `JSON.stringify` does, but with the digits of `writtenNumber`. */
export function stringifyAsWritten(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  return LONG_NUMBER.test(text) ? JSON.stringify(value, asWritten, indent) : text;
}

function asWritten(this: object, key: string, value: unknown): unknown {
  const digits = typeof value === 'number' ? writtenNumber(this, key) : undefined;
  return digits === undefined ? value : rawJson(digits);
}

// A cast: TypeScript's types lack `rawJSON` (ES2026), whose result `JSON.stringify` writes as the given text.
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): object };
