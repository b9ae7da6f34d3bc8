import type { Random } from '../../runtime/engine/random.ts';

/** Bytes that parsers treat specially, whatever the format. */
const BYTES = [0, 0x0a, 0x20, 0x22, 0x2c, 0x2d, 0x30, 0x3a, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d, 0x7f, 0x80, 0xc3, 0xf0, 0xff];
const MOST_BYTES = 64 * 1024;

/** Returns a changed copy of an input: bytes, ranges, words of the format, and parts of another input. */
export function mutate(random: Random, input: Uint8Array, other: Uint8Array, words: readonly string[]): Uint8Array {
  let bytes = input;
  for (let left = 1 + below(random, 4); left > 0; left--) bytes = change(random, bytes, other, words);
  return bytes.subarray(0, MOST_BYTES);
}

function change(random: Random, bytes: Uint8Array, other: Uint8Array, words: readonly string[]): Uint8Array {
  const start = below(random, bytes.length + 1);
  const end = Math.min(bytes.length, start + 1 + below(random, random.uniform() < 0.8 ? 8 : bytes.length + 1));
  const replaced = (by: Uint8Array, until = end) =>
    new Uint8Array(Buffer.concat([bytes.subarray(0, start), by, bytes.subarray(until)]));
  switch (below(random, 7)) {
    case 0:
      return replaced(Uint8Array.of(pick(random, BYTES)));
    case 1:
      return replaced(Uint8Array.of((bytes[start] ?? 0) ^ (1 << below(random, 8))), Math.min(start + 1, bytes.length));
    case 2:
      return replaced(new Uint8Array(0));
    case 3:
      return replaced(Buffer.concat([bytes.subarray(start, end), bytes.subarray(start, end)]));
    case 4:
      return replaced(Buffer.from(pick(random, words)), random.uniform() < 0.5 ? start : end);
    case 5: {
      const from = below(random, other.length + 1);
      return replaced(other.subarray(from, from + 1 + below(random, 64)), start);
    }
    default:
      // A whole string or number of a text, up to the next mark.
      return replaced(Buffer.from(pick(random, words)), nextMark(bytes, start));
  }
}

function nextMark(bytes: Uint8Array, start: number): number {
  const found = bytes.subarray(start).findIndex((byte) => [0x2c, 0x7d, 0x5d, 0x3a, 0x22, 0x0a].includes(byte));
  return found < 0 ? bytes.length : start + found;
}

export const below = (random: Random, most: number): number => Math.floor(random.uniform() * most);
export const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)] as T;
