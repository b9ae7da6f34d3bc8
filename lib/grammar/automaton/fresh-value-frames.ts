import { at } from '../../at.ts';
import type { NumberLanguage } from '../number/number-language.ts';
import { canonical } from '../resolve/matches.ts';
import type { LiteralsAlternative } from '../resolve/node.ts';
import { type Frame, idOf, isNumeric, OpenFrame, single } from './frame.ts';
import { compareBytes, narrow, type SortedTexts } from './literal-frame.ts';

/** Represents a list whose items must all differ. */
export interface ItemOwner extends Frame {
  /** The items so far, each as a text that only equal values share (`canonical`). */
  readonly used: readonly string[];
  /** Returns the frame after an item with this text. */
  afterItem(text: string): Frame;
}

interface Literals {
  texts: SortedTexts;
  /** For each text, the one that only equal values share. */
  keys: readonly string[];
}

const encoder = new TextEncoder();
const cache = new WeakMap<LiteralsAlternative, Literals>();

function literalsOf(alternative: LiteralsAlternative): Literals {
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

/**
 * Reads one of the values of an `enum` that is not yet an item of the list. The texts from index `low` to before `high`
 * begin with the `length` bytes read so far.
 */
export class FreshLiteralFrame extends OpenFrame {
  readonly #owner: ItemOwner;
  readonly #literals: Literals;
  readonly #low: number;
  readonly #high: number;
  readonly length: number;
  /** Bytes that may come next: each leads to a fresh value. */
  readonly #bytes: ReadonlySet<number>;

  private constructor(owner: ItemOwner, literals: Literals, low: number, high: number, length: number) {
    super(owner, owner.depth);
    this.#owner = owner;
    this.#literals = literals;
    this.#low = low;
    this.#high = high;
    this.length = length;
    const bytes = new Set<number>();
    for (let i = low; i < high; i++) {
      const byte = literals.texts[i]?.[length];
      if (byte !== undefined && !owner.used.includes(at(literals.keys, i))) bytes.add(byte);
    }
    this.#bytes = bytes;
  }

  /** Returns the frame before the first byte; null if every value is an item already. */
  static first(owner: ItemOwner, alternative: LiteralsAlternative): FreshLiteralFrame | null {
    const literals = literalsOf(alternative);
    const frame = FreshLiteralFrame.#make(owner, literals, 0, literals.texts.length, 0);
    return frame.#bytes.size > 0 ? frame : null;
  }

  static #make(owner: ItemOwner, literals: Literals, low: number, high: number, length: number) {
    const key = `u${owner.id},${idOf(literals)},${low},${high},${length}`;
    return owner.table.frame(key, () => new FreshLiteralFrame(owner, literals, low, high, length));
  }

  /** The frame after the value that is complete here; null if there is none. */
  get #whole(): Frame | null {
    const { length } = this;
    const literals = this.#literals;
    const low = this.#low;
    const owner = this.#owner;
    const key = literals.keys[low];
    if (key === undefined || literals.texts[low]?.length !== length || owner.used.includes(key)) return null;
    return owner.afterItem(key);
  }

  override step(byte: number, into: Frame[]): void {
    const { length } = this;
    const owner = this.#owner;
    const literals = this.#literals;
    if (this.#bytes.has(byte)) {
      const [low, high] = narrow(literals.texts, this.#low, this.#high, length, byte);
      const next = FreshLiteralFrame.#make(owner, literals, low, high, length + 1);
      into.push(next.#bytes.size === 0 && next.#whole ? next.#whole : next);
    }
    this.#whole?.step(byte, into);
  }

  override forced(): number {
    return this.#whole ? -1 : single(this.#bytes);
  }
}

/** Reads a number that differs from all items of the list; `text` is the part read so far. */
export class FreshNumberFrame extends OpenFrame {
  readonly #owner: ItemOwner;
  readonly #language: NumberLanguage;
  readonly text: string;

  private constructor(owner: ItemOwner, language: NumberLanguage, text: string) {
    super(owner, owner.depth);
    this.#owner = owner;
    this.#language = language;
    this.text = text;
  }

  /** Returns the frame before the first digit; null if every number is an item already. */
  static first(owner: ItemOwner, language: NumberLanguage): FreshNumberFrame | null {
    return FreshNumberFrame.#make(owner, language, '');
  }

  static #make(owner: ItemOwner, language: NumberLanguage, text: string): FreshNumberFrame | null {
    const frame = owner.table.frame(
      `w${owner.id},${idOf(language)},${text}`,
      () => new FreshNumberFrame(owner, language, text),
    );
    return frame.#possible ? frame : null;
  }

  get #possible(): boolean {
    if (this.#known === undefined) {
      this.#known = false;
      for (const word of this.#language.words(this.text)) {
        if (this.#owner.used.includes(canonical(Number(word)))) continue;
        this.#known = true;
        break;
      }
    }
    return this.#known;
  }
  #known: boolean | undefined;

  override step(byte: number, into: Frame[]): void {
    const { text } = this;
    const owner = this.#owner;
    const language = this.#language;
    if (isNumeric(byte)) {
      const next = language.fits(text + String.fromCharCode(byte))
        ? FreshNumberFrame.#make(owner, language, text + String.fromCharCode(byte))
        : null;
      if (next) into.push(next);
    } else if (language.accepts(text)) {
      const key = canonical(Number(text));
      if (!owner.used.includes(key)) owner.afterItem(key).step(byte, into);
    }
  }

  override forced(): number {
    return -1;
  }
}
