import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, type Frame, idOf, OpenFrame } from './frame.ts';
import { advance, forcedIn, type Place } from './string-frame.ts';
import { completed, PLAIN } from './text-bytes.ts';

/** Describes what surrounds a text that must differ from others: the name of a member, or an item of a list. */
export interface TextOwner extends Frame {
  /** Texts that it must differ from, those of undeclared members or earlier items. */
  readonly taken: ReadonlySet<string>;
  /** Returns the frame after the closing quote. */
  afterText(text: string, language: StringLanguage): Frame;
}

/**
 * Reads a string after its opening quote, up to the closing quote, that must differ from the owner's `taken` texts: the
 * name of an undeclared member, or a string in a list with `uniqueItems`.
 */
export class FreshTextFrame extends OpenFrame {
  readonly owner: TextOwner;
  readonly language: StringLanguage;
  readonly place: Readonly<Place>;
  /** The complete characters read so far. */
  readonly text: string;

  private constructor(owner: TextOwner, language: StringLanguage, place: Place, text: string) {
    super(owner, owner.depth);
    this.owner = owner;
    this.language = language;
    this.place = place;
    this.text = text;
  }

  /** Returns the frame after the opening quote; null if every text is taken. */
  static first(owner: TextOwner, language: StringLanguage): FreshTextFrame | null {
    const place = { state: 0, length: 0, pending: PLAIN };
    return isFresh(owner, language, place, '') ? FreshTextFrame.#make(owner, language, place, '') : null;
  }

  static #make(owner: TextOwner, language: StringLanguage, place: Place, text: string): FreshTextFrame {
    const key = `m${owner.id},${idOf(language)},${place.pending},${text}`;
    return owner.table.frame(key, () => new FreshTextFrame(owner, language, place, text));
  }

  /** The frame after the closing quote. */
  get behind(): Frame {
    return this.owner.afterText(this.text, this.language);
  }

  override step(byte: number, into: Frame[]): void {
    const { owner, language } = this;
    const place = { ...this.place };
    const done = advance(language, place, byte);
    if (done === 'end') {
      if (!owner.taken.has(this.text)) into.push(this.behind);
    } else if (done === 'on') {
      const whole = place.length > this.place.length;
      const text = whole ? this.text + completed(this.place.pending, byte) : this.text;
      // Only texts that begin like a taken one can end in it alone.
      if (!whole || isFresh(owner, language, place, text))
        into.push(FreshTextFrame.#make(owner, language, place, text));
    }
  }

  override forced(): number {
    // What is forced by the language alone; a taken text may force more, which the model then chooses.
    const forced = forcedIn(this.language, this.place);
    return forced === BYTE.quote && this.owner.taken.has(this.text) ? -1 : forced;
  }
}

/** Tells whether a text that begins with `text` can still become an allowed one that is not taken. */
function isFresh({ taken }: TextOwner, language: StringLanguage, { state, length }: Place, text: string): boolean {
  const alike = new Set<string>();
  for (const one of taken) if (one.startsWith(text)) alike.add(one.slice(text.length));
  if (alike.size === 0) return language.fits(state, length);
  for (const rest of language.words(state, length)) if (!alike.has(rest)) return true;
  return false;
}
