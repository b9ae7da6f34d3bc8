import { at } from '../../at.ts';
import type { QuotedTexts } from '../text/quoted-texts.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, type Frame, idOf } from './frame.ts';
import { advance, countOf, StringFrame } from './string-frame.ts';
import { PLAIN } from './text-bytes.ts';

type StringPosition = ConstructorParameters<typeof StringFrame>;

/**
 * Reads a string that is quoted from the texts `quoted`. `offsets` are the places in the texts that follow what was
 * read so far; all are equally possible.
 */
export class VerbatimFrame extends StringFrame {
  readonly quoted: QuotedTexts;
  readonly offsets: Int32Array;

  /** True once a character has been read. */
  readonly #begun: boolean;

  private constructor(before: VerbatimFrame | null, quoted: QuotedTexts, offsets: Int32Array, ...rest: StringPosition) {
    super(...rest);
    this.quoted = quoted;
    this.offsets = offsets;
    this.#begun = before !== null && (before.#begun || this.place.pending === PLAIN);
  }

  /** Returns the frame of a string at its beginning. `language` bounds its length. */
  static first(quoted: QuotedTexts, language: StringLanguage, after: Frame): VerbatimFrame {
    const place = { state: 0, length: 0, pending: PLAIN };
    const key = `q${idOf(quoted)},${idOf(language)},${after.id}`;
    return after.table.frame(
      key,
      () => new VerbatimFrame(null, quoted, quoted.beginningsOf(language.min), language, place, after),
    );
  }

  /** True if the string may end here. */
  get mayClose(): boolean {
    const { state, length, pending } = this.place;
    if (pending !== PLAIN || !this.#begun || !this.language.accepts(state, length)) return false;
    // Where the greatest length is reached, the string must be able to end.
    return length >= this.language.max || this.quoted.mayEnd(at(this.offsets, 0));
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.quote && this.place.pending === PLAIN) {
      if (this.mayClose) into.push(this.after);
      return;
    }
    const place = { ...this.place };
    if (advance(this.language, place, byte) !== 'on') return;
    const { bytes } = this.quoted;
    const offsets = this.offsets.filter((offset) => bytes[offset] === byte);
    if (offsets.length === 0) return;
    for (let i = 0; i < offsets.length; i++) offsets[i] = at(offsets, i) + 1;
    place.length = countOf(this.language, place.length);
    // What was read so far determines the offsets, and the frame before determines what was read.
    into.push(
      this.table.frame(
        `q${this.id},${byte}`,
        () => new VerbatimFrame(this, this.quoted, offsets, this.language, place, this.after),
      ),
    );
  }

  override forced(): number {
    return -1;
  }
}
