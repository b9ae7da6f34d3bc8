/**
 * JSON strings as bytes: UTF-8, with the escapes that `JSON.stringify` uses for the characters of `TEXT`
 * (`../text/code-points.ts`). Every text is written in exactly one way, so equal texts have equal bytes.
 */

/** Value of `Place.pending` between two characters. */
export const PLAIN = 0;
/** Value of `Place.pending` directly after a backslash. */
export const ESCAPE = 1;

/** The escapes that are written: pairs of the byte after the backslash and the code point that it stands for. */
export const ESCAPES: readonly (readonly [number, number])[] = [
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
];

/**
 * Returns the length in bytes of the UTF-8 sequence that begins with this byte; 0 if no sequence of several bytes does.
 */
export function utf8Length(byte: number): number {
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  return byte >= 0xf0 && byte <= 0xf4 ? 4 : 0;
}

/*
 * A partial UTF-8 sequence is packed into one number, which saves an object for each byte of the vocabulary when a
 * token mask is computed. The number is at least 2. Its bits, from the lowest: the length of the sequence (3 bits), the
 * bytes still to come (2 bits), the bits of the character so far.
 */

/**
 * Returns the packed sequence after its first byte.
 *
 * @param bytes number of bytes of the whole sequence (`utf8Length`)
 */
export function startSequence(byte: number, bytes: number): number {
  return 2 + (((((byte & (0xff >> (bytes + 1))) << 2) | (bytes - 1)) << 3) | bytes);
}

/** Returns the packed sequence after one more byte, from 0x80 to 0xbf. */
export function extendSequence(pending: number, byte: number): number {
  const packed = pending - 2;
  return 2 + (((((((packed >> 5) << 6) | (byte & 0x3f)) << 2) | (((packed >> 3) & 3) - 1)) << 3) | (packed & 7));
}

/** Returns the number of bytes that a packed sequence still needs. */
export function bytesLeft(pending: number): number {
  return ((pending - 2) >> 3) & 3;
}

const SMALLEST = [0, 0, 0x80, 0x8_00, 0x1_00_00];

/**
 * Returns the code point of the lowest character that a packed sequence can still become, without overlong forms,
 * surrogates and values beyond Unicode.
 */
export function lowest(pending: number): number {
  const packed = pending - 2;
  const first = Math.max((packed >> 5) << (6 * bytesLeft(pending)), SMALLEST[packed & 7] ?? 0);
  return first >= 0xd8_00 && first <= 0xdf_ff ? 0xe0_00 : first;
}

/**
 * Returns the code point of the highest character that a packed sequence can still become; less than `lowest` if there
 * is none.
 */
export function highest(pending: number): number {
  const span = 6 * bytesLeft(pending);
  const last = Math.min((((pending - 2) >> 5) << span) + (1 << span) - 1, 0x10_ff_ff);
  return last >= 0xd8_00 && last <= 0xdf_ff ? 0xd7_ff : last;
}

/** Returns the first byte of a character as written in a JSON string. */
export function firstByte(codePoint: number): number {
  return ESCAPES.some(([, character]) => character === codePoint) ? 0x5c : firstRawByte(codePoint);
}

/** Returns the first byte of a character in UTF-8. */
export function firstRawByte(codePoint: number): number {
  if (codePoint < 0x80) return codePoint;
  if (codePoint < 0x8_00) return 0xc0 | (codePoint >> 6);
  return codePoint < 0x1_00_00 ? 0xe0 | (codePoint >> 12) : 0xf0 | (codePoint >> 18);
}

/**
 * Returns the character that `byte` completes.
 *
 * @param pending the bytes read of this character before, as in `Place`
 */
export function completed(pending: number, byte: number): string {
  if (pending === PLAIN) return String.fromCharCode(byte);
  if (pending === ESCAPE) return String.fromCharCode(ESCAPES.find(([letter]) => letter === byte)![1]);
  return String.fromCodePoint(lowest(extendSequence(pending, byte)));
}

/** Returns the number of bytes read of an incomplete character; `pending` as in `Place`. */
export function pendingBytes(pending: number): number {
  return pending === PLAIN || pending === ESCAPE ? pending : ((pending - 2) & 7) - bytesLeft(pending);
}
