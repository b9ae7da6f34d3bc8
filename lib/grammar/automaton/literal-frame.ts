import type { LiteralsAlternative } from '../resolve/node.ts';
import { type Frame, idOf, OpenFrame } from './frame.ts';

/** Represents byte strings in ascending order, without duplicates. */
export type SortedTexts = readonly Uint8Array[];

const encoder = new TextEncoder();
const cache = new WeakMap<LiteralsAlternative, SortedTexts>();

/** Returns the JSON texts of the values of `enum` or `const`, as UTF-8 in byte order. */
export function literalTexts(alternative: LiteralsAlternative): SortedTexts {
  let texts = cache.get(alternative);
  if (!texts) {
    texts = alternative.values.map((value) => encoder.encode(JSON.stringify(value))).sort(compareBytes);
    cache.set(alternative, texts);
  }
  return texts;
}

/** Compares two byte strings for `sort`: below 0 if `a` comes first, above 0 if `b` does, 0 if they are equal. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return (a[i] ?? 0) - (b[i] ?? 0);
  return a.length - b.length;
}

/**
 * Returns the part of a range of texts that has this byte at index `at`. All texts of the range agree on the bytes
 * before it. A range is the index of its first text and the index after its last one.
 */
export function narrow(texts: SortedTexts, low: number, high: number, at: number, byte: number): [number, number] {
  const first = (least: number) => {
    let [a, b] = [low, high];
    while (a < b) {
      const middle = (a + b) >> 1;
      if ((texts[middle]?.[at] ?? -1) < least) a = middle + 1;
      else b = middle;
    }
    return a;
  };
  return [first(byte), first(byte + 1)];
}

/**
 * Reads one of several fixed texts, such as the values of an `enum`. The texts from index `low` to before `high` begin
 * with the `at` bytes read so far.
 */
export class LiteralFrame extends OpenFrame {
  readonly #texts: SortedTexts;
  readonly #low: number;
  readonly #high: number;
  readonly at: number;

  private constructor(texts: SortedTexts, low: number, high: number, at: number, after: Frame) {
    super(after, after.depth);
    this.#texts = texts;
    this.#low = low;
    this.#high = high;
    this.at = at;
  }

  static first(texts: SortedTexts, after: Frame): LiteralFrame {
    return LiteralFrame.#make(texts, 0, texts.length, 0, after);
  }

  static #make(texts: SortedTexts, low: number, high: number, at: number, after: Frame): LiteralFrame {
    const key = `l${idOf(texts)},${low},${high},${at},${after.id}`;
    return after.table.frame(key, () => new LiteralFrame(texts, low, high, at, after));
  }

  /**
   * True if one of the texts is complete. The frame then continues only if this text is a prefix of a longer one, as
   * `1` is of `12`.
   */
  get #whole(): boolean {
    return this.#texts[this.#low]?.length === this.at;
  }

  override step(byte: number, into: Frame[]): void {
    const { at } = this;
    const texts = this.#texts;
    const [low, high] = narrow(texts, this.#low, this.#high, at, byte);
    if (low < high) {
      const last = low + 1 === high && texts[low]?.length === at + 1;
      into.push(last ? this.after : LiteralFrame.#make(texts, low, high, at + 1, this.after));
    }
    // Texts between tags have no quotes: a longer one may continue with the byte that follows a shorter one.
    if (this.#whole) this.after.step(byte, into);
  }

  override forced(): number {
    const { at } = this;
    const texts = this.#texts;
    const byte = texts[this.#low]?.[at];
    // The texts are sorted, so if any two differ, the first and the last do.
    return byte !== undefined && texts[this.#high - 1]?.[at] === byte ? byte : -1;
  }
}
