/**
 * How the characters of a JSON string are written: UTF-8, and the escapes that `JSON.stringify` uses for the characters of `TEXT`. Every
 * text has one form, so equal texts have equal bytes.
 */

/** Between two characters. */
export const PLAIN = 0;
/** After a backslash. */
export const ESCAPE = 1;

/** The byte after the backslash, and the character that is meant. */
export const escaped: readonly (readonly [number, number])[] = [
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
];

/** Bytes of the UTF-8 sequence that begins with this byte; 0: none does. */
export function utf8Length(byte: number): number {
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  return byte >= 0xf0 && byte <= 0xf4 ? 4 : 0;
}

/*
 * A UTF-8 sequence that is being written is one number, since it is looked at for every byte of a vocabulary: 2, and from the lowest bit on
 * the bytes in all (3 bits), the bytes left (2 bits), and the bits of the character so far.
 */

/** The sequence after its first byte. */
export function firstOf(byte: number, bytes: number): number {
  return 2 + (((((byte & (0xff >> (bytes + 1))) << 2) | (bytes - 1)) << 3) | bytes);
}

/** The sequence after one more byte. */
export function moreOf(pending: number, byte: number): number {
  const packed = pending - 2;
  return 2 + (((((((packed >> 5) << 6) | (byte & 0x3f)) << 2) | (((packed >> 3) & 3) - 1)) << 3) | (packed & 7));
}

/** Bytes still to come. */
export function leftOf(pending: number): number {
  return ((pending - 2) >> 3) & 3;
}

const SMALLEST = [0, 0, 0x80, 0x8_00, 0x1_00_00];

/** The first character that a sequence can still become; overlong forms, surrogates and what is beyond Unicode are none. */
export function lowest(pending: number): number {
  const packed = pending - 2;
  const first = Math.max((packed >> 5) << (6 * leftOf(pending)), SMALLEST[packed & 7]!);
  return first >= 0xd8_00 && first <= 0xdf_ff ? 0xe0_00 : first;
}

/** The last one; below `lowest` where there is none. */
export function highest(pending: number): number {
  const span = 6 * leftOf(pending);
  const last = Math.min((((pending - 2) >> 5) << span) + (1 << span) - 1, 0x10_ff_ff);
  return last >= 0xd8_00 && last <= 0xdf_ff ? 0xd7_ff : last;
}

/** The first byte with which a character is written in a JSON string. */
export function firstByte(codePoint: number): number {
  if (escaped.some(([, character]) => character === codePoint)) return 0x5c;
  if (codePoint < 0x80) return codePoint;
  if (codePoint < 0x8_00) return 0xc0 | (codePoint >> 6);
  return codePoint < 0x1_00_00 ? 0xe0 | (codePoint >> 12) : 0xf0 | (codePoint >> 18);
}

/** The character that this byte completes. */
export function completed(pending: number, byte: number): string {
  if (pending === PLAIN) return String.fromCharCode(byte);
  if (pending === ESCAPE) return String.fromCharCode(escaped.find(([letter]) => letter === byte)![1]);
  return String.fromCodePoint(lowest(moreOf(pending, byte)));
}

/** Bytes written of a character that is not whole. */
export function pendingBytes(pending: number): number {
  return pending === PLAIN || pending === ESCAPE ? pending : ((pending - 2) & 7) - leftOf(pending);
}
