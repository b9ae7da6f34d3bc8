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

/** A UTF-8 sequence that is being written, in one number: its bits so far, bytes left, and bytes in all. */
export const INSIDE = {
  first: (byte: number, bytes: number): number => pack(byte & (0xff >> (bytes + 1)), bytes - 1, bytes),
  more: (pending: number, byte: number): number => {
    const { bits, left, bytes } = unpack(pending);
    return pack(bits * 64 + (byte & 0x3f), left - 1, bytes);
  },
  left: (pending: number): number => unpack(pending).left,
  /** The first byte with which a character is written in a JSON string. */
  firstByte: (codePoint: number): number => {
    if (escaped.some(([, character]) => character === codePoint)) return 0x5c;
    if (codePoint < 0x80) return codePoint;
    if (codePoint < 0x8_00) return 0xc0 | (codePoint >> 6);
    return codePoint < 0x1_00_00 ? 0xe0 | (codePoint >> 12) : 0xf0 | (codePoint >> 18);
  },
};

function pack(bits: number, left: number, bytes: number): number {
  return 2 + ((bits * 4 + left) * 8 + bytes);
}

function unpack(pending: number): { bits: number; left: number; bytes: number } {
  const rest = (pending - 2) >> 3;
  return { bits: rest >> 2, left: rest & 3, bytes: (pending - 2) & 7 };
}

const SMALLEST = [0, 0, 0x80, 0x8_00, 0x1_00_00];

/** The characters that a sequence can still become; `first > last` for none (overlong forms, surrogates, beyond Unicode). */
export function sequence(pending: number): { first: number; last: number } {
  const { bits, left, bytes } = unpack(pending);
  const span = 64 ** left;
  let first = Math.max(bits * span, SMALLEST[bytes]!);
  let last = Math.min(bits * span + span - 1, 0x10_ff_ff);
  if (first >= 0xd8_00 && first <= 0xdf_ff) first = 0xe0_00;
  if (last >= 0xd8_00 && last <= 0xdf_ff) last = 0xd7_ff;
  return { first, last };
}

/** The character that this byte completes. */
export function completed(pending: number, byte: number): string {
  if (pending === PLAIN) return String.fromCharCode(byte);
  if (pending === ESCAPE) return String.fromCharCode(escaped.find(([letter]) => letter === byte)![1]);
  return String.fromCodePoint(sequence(INSIDE.more(pending, byte)).first);
}

/** Bytes of a character that is not whole. */
export function pendingBytes(pending: number): number {
  if (pending === PLAIN || pending === ESCAPE) return pending;
  const { left, bytes } = unpack(pending);
  return bytes - left;
}
