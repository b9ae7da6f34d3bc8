import { at } from '../../at.ts';
import type { NumberLanguage } from '../number/number-language.ts';
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
