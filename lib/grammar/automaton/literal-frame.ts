import { canonical } from '../resolve/matches.ts';
import type { LiteralsAlternative } from '../resolve/node.ts';
import { type Frame, idOf, OpenFrame, single } from './frame.ts';

/** Represents byte strings in ascending order, without duplicates. */
export type SortedTexts = readonly Uint8Array[];

interface Literals {
  /** The JSON texts of the values of `enum` or `const`, as UTF-8. */
  texts: SortedTexts;
  /** For each text, one that only equal values share. */
  keys: readonly string[];
}

const encoder = new TextEncoder();
const cache = new WeakMap<LiteralsAlternative, Literals>();

/** Returns the texts of the values of `enum` or `const`; always the same object for the same `alternative`. */
export function literalsOf(alternative: LiteralsAlternative): Literals {
  let found = cache.get(alternative);
  if (!found) {
    const all = alternative.values.map((value) => ({
      text: encoder.encode(JSON.stringify(value)),
      key: canonical(value),
    }));
    all.sort((a, b) => compareBytes(a.text, b.text));
    found = { texts: all.map(({ text }) => text), keys: all.map(({ key }) => key) };
    cache.set(alternative, found);
  }
  return found;
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
function narrow(texts: SortedTexts, low: number, high: number, at: number, byte: number): [number, number] {
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

/** Describes fixed texts, one of which is read: the values of an `enum`, or the names of members. */
interface Choice {
  /** Text that no other choice of the automaton has, for the table of frames. */
  key: string;
  texts: SortedTexts;
  /** The frame around the text: that of the list or object, or the one that continues after it. */
  parent: Frame;
  /** True if the texts are names, whose opening quote has been read. */
  isName?: true;
  /** Tells whether the text at an index may be read; by default, all may. */
  allows?(index: number): boolean;
  /** Returns the frame after the text at an index. */
  behind(index: number): Frame;
}

/**
 * Reads one of the texts of a choice. Those from index `#low` to before `#high` begin with the `length` bytes read so
 * far.
 */
export class LiteralFrame extends OpenFrame {
  readonly #choice: Choice;
  readonly #low: number;
  readonly length: number;
  readonly #high: number;
  /** Bytes that may come next: each leads to a text that is allowed. */
  readonly #bytes = new Set<number>();

  private constructor(choice: Choice, low: number, high: number, length: number) {
    super(choice.parent, choice.parent.depth);
    this.#choice = choice;
    this.#low = low;
    this.#high = high;
    this.length = length;
    for (let i = low; i < high; i++) {
      const byte = choice.texts[i]?.[length];
      if (byte !== undefined && (choice.allows?.(i) ?? true)) this.#bytes.add(byte);
    }
  }

  /** Returns the frame of a choice before the first byte. */
  static first(choice: Choice): LiteralFrame {
    return LiteralFrame.#make(choice, 0, choice.texts.length, 0);
  }

  /** Returns the frame of texts all of which are allowed, and continue with `after`. */
  static of(texts: SortedTexts, after: Frame): LiteralFrame {
    return LiteralFrame.first({ key: `l${idOf(texts)},${after.id}`, texts, parent: after, behind: () => after });
  }

  static #make(choice: Choice, low: number, high: number, length: number): LiteralFrame {
    const key = `${choice.key},${low},${high},${length}`;
    return choice.parent.table.frame(key, () => new LiteralFrame(choice, low, high, length));
  }

  get isName(): boolean {
    return this.#choice.isName ?? false;
  }

  /** True if some text may be read from here. */
  get possible(): boolean {
    return this.#bytes.size > 0;
  }

  /**
   * The frame after the text that is complete here; null if none is. A longer text may begin with it, as `12` with `1`.
   */
  get #whole(): Frame | null {
    const { texts, allows, behind } = this.#choice;
    const isWhole = texts[this.#low]?.length === this.length && (allows?.(this.#low) ?? true);
    return isWhole ? behind(this.#low) : null;
  }

  override step(byte: number, into: Frame[]): void {
    if (this.#bytes.has(byte)) {
      const [low, high] = narrow(this.#choice.texts, this.#low, this.#high, this.length, byte);
      const next = LiteralFrame.#make(this.#choice, low, high, this.length + 1);
      into.push(next.possible ? next : (next.#whole ?? next));
    }
    // Texts between tags have no quotes: a longer one may continue with the byte that follows a shorter one.
    this.#whole?.step(byte, into);
  }

  override forced(): number {
    return this.#whole ? -1 : single(this.#bytes);
  }
}
