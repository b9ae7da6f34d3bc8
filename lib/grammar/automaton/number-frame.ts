import { at } from '../../at.ts';
import type { NumberLanguage } from '../number/number-language.ts';
import { canonical } from '../resolve/matches.ts';
import { type Frame, idOf, isNumeric, OpenFrame } from './frame.ts';

const NUMERIC = [...'-.0123456789'];

/** Reads a number; `text` is the part read so far. The number ends at the first byte that cannot belong to a number. */
export class NumberFrame extends OpenFrame {
  readonly language: NumberLanguage;
  readonly text: string;

  private constructor(language: NumberLanguage, text: string, after: Frame) {
    super(after, after.depth);
    this.language = language;
    this.text = text;
  }

  static first(language: NumberLanguage, after: Frame): NumberFrame {
    return NumberFrame.#make(language, '', after);
  }

  static #make(language: NumberLanguage, text: string, after: Frame): NumberFrame {
    const key = `n${idOf(language)},${text},${after.id}`;
    return after.table.frame(key, () => new NumberFrame(language, text, after));
  }

  override step(byte: number, into: Frame[]): void {
    if (isNumeric(byte)) {
      const text = this.text + String.fromCharCode(byte);
      if (this.language.fits(text)) into.push(NumberFrame.#make(this.language, text, this.after));
    } else if (this.language.accepts(this.text)) this.after.step(byte, into);
  }

  override forced(): number {
    const next = NUMERIC.filter((char) => this.language.fits(this.text + char));
    if (this.language.accepts(this.text)) return next.length === 0 ? this.after.forced() : -1;
    return next.length === 1 ? at(next, 0).charCodeAt(0) : -1;
  }
}

/** Represents a list whose items must all differ. */
export interface ItemOwner extends Frame {
  /** The items so far, each as a text that only equal values share (`canonical`). */
  readonly used: readonly string[];
  /** Returns the frame after an item with this text. */
  afterItem(text: string): Frame;
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
