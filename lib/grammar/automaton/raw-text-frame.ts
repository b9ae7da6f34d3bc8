import type { StringLanguage } from '../text/string-language.ts';
import { type Frame, idOf, OpenFrame } from './frame.ts';
import { advanceRaw, countOf, type Place } from './string-frame.ts';
import { firstRawByte, PLAIN } from './text-bytes.ts';

/**
 * Reads a string that is written without quotes and escapes, up to a closing tag. No text of the language contains the
 * tag, so the string ends at the first one.
 */
export class RawTextFrame extends OpenFrame {
  readonly language: StringLanguage;
  readonly place: Readonly<Place>;

  /** @param after reads the closing tag from its first byte */
  private constructor(language: StringLanguage, place: Place, after: Frame) {
    super(after, after.depth);
    this.language = language;
    this.place = place;
  }

  /** Returns the frame of a text at the position `place`, by default at its beginning. */
  static at(
    language: StringLanguage,
    after: Frame,
    place: Place = { state: 0, length: 0, pending: PLAIN },
  ): RawTextFrame {
    const at = { ...place, length: countOf(language, place.length) };
    const key = `r${idOf(language)},${at.state},${at.length},${at.pending},${after.id}`;
    return after.table.frame(key, () => new RawTextFrame(language, at, after));
  }

  /** The frame that reads the closing tag if the text may end here; null otherwise. */
  get closing(): Frame | null {
    const { state, length, pending } = this.place;
    return pending === PLAIN && this.language.accepts(state, length) ? this.after : null;
  }

  override step(byte: number, into: Frame[]): void {
    this.closing?.step(byte, into);
    const place = { ...this.place };
    if (advanceRaw(this.language, place, byte) === 'on') into.push(RawTextFrame.at(this.language, this.after, place));
  }

  override forced(): number {
    const { state, length, pending } = this.place;
    if (pending !== PLAIN) return -1;
    if (!this.closing) {
      const only = this.language.onlyNext(state, length);
      return only < 0 ? -1 : firstRawByte(only);
    }
    return this.language.allowsAny(state, length, 0, 0x10_ff_ff) ? -1 : this.closing.forced();
  }
}
