import { at } from '../../at.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, type Frame, idOf, OpenFrame } from './frame.ts';
import {
  bytesLeft,
  ESCAPE,
  ESCAPES,
  extendSequence,
  firstByte,
  highest,
  lowest,
  PLAIN,
  startSequence,
  utf8Length,
} from './text-bytes.ts';

/**
 * Describes a position in a string: the state of its language's automaton, the number of complete characters so far,
 * and the bytes read of the next character.
 */
export interface Place {
  state: number;
  length: number;
  /** `PLAIN`, `ESCAPE`, or the UTF-8 sequence so far (`text-bytes.ts`). */
  pending: number;
}

/** Names the effect of one more byte: `no` (not allowed), `on` (the position moved), or `end` (the closing quote). */
export type Advance = 'no' | 'on' | 'end';

/**
 * Reads one byte of JSON string text at `place`. Moves `place` forward for the result `on`, and leaves it unchanged
 * otherwise.
 */
export function advance(language: StringLanguage, place: Place, byte: number): Advance {
  const { state, length, pending } = place;
  if (pending === PLAIN) {
    if (byte === BYTE.quote) return language.accepts(state, length) ? 'end' : 'no';
    if (byte === BYTE.backslash) {
      if (!ESCAPES.some(([, codePoint]) => language.step(state, length, codePoint) >= 0)) return 'no';
      place.pending = ESCAPE;
      return 'on';
    }
    if (byte < 0x20) return 'no';
  } else if (pending === ESCAPE) {
    const found = ESCAPES.find(([letter]) => letter === byte);
    return found ? character(language, place, found[1]) : 'no';
  }
  return advanceRaw(language, place, byte);
}

/**
 * Reads one byte at `place` of a text that is written without quotes and escapes. Moves `place` forward for the result
 * `on`, and leaves it unchanged for `no`. Never returns `end`.
 */
export function advanceRaw(language: StringLanguage, place: Place, byte: number): Advance {
  const { pending } = place;
  if (pending === PLAIN) return byte < 0x80 ? character(language, place, byte) : begin(language, place, byte);
  return byte < 0x80 || byte > 0xbf ? 'no' : goOn(language, place, extendSequence(pending, byte));
}

function begin(language: StringLanguage, place: Place, byte: number): Advance {
  const bytes = utf8Length(byte);
  return bytes === 0 ? 'no' : goOn(language, place, startSequence(byte, bytes));
}

function goOn(language: StringLanguage, place: Place, pending: number): Advance {
  const first = lowest(pending);
  const last = highest(pending);
  if (first > last) return 'no';
  if (bytesLeft(pending) === 0) return character(language, place, first);
  if (!language.allowsAny(place.state, place.length, first, last)) return 'no';
  place.pending = pending;
  return 'on';
}

function character(language: StringLanguage, place: Place, codePoint: number): Advance {
  const next = language.step(place.state, place.length, codePoint);
  if (next < 0) return 'no';
  place.state = next;
  place.length++;
  place.pending = PLAIN;
  return 'on';
}

/**
 * Reads a string value. Member names have frame classes of their own (`LiteralFrame`, `FreshTextFrame`), because these
 * have to compare the text.
 */
export class StringFrame extends OpenFrame {
  readonly language: StringLanguage;
  readonly place: Readonly<Place>;

  constructor(language: StringLanguage, place: Place, after: Frame) {
    super(after, after.depth);
    this.language = language;
    this.place = place;
  }

  override step(byte: number, into: Frame[]): void {
    const place = { ...this.place };
    const done = advance(this.language, place, byte);
    if (done === 'end') into.push(this.after);
    else if (done === 'on') into.push(stringFrame(this.language, this.after, place));
  }

  override forced(): number {
    return forcedIn(this.language, this.place);
  }
}

/** Returns the frame of a string at `place`, by default at its beginning. */
export function stringFrame(
  language: StringLanguage,
  after: Frame,
  place: Place = { state: 0, length: 0, pending: 0 },
): StringFrame {
  const at = { ...place, length: countOf(language, place.length) };
  const key = `s${idOf(language)},${at.state},${at.length},${at.pending},${after.id}`;
  return after.table.frame(key, () => new StringFrame(language, at, after));
}

/**
 * Returns the number of characters that a `Place` of this language counts after `length` characters. Without a maximum,
 * counting stops at the minimum, because all longer texts lead to the same state.
 */
export function countOf({ min, max }: StringLanguage, length: number): number {
  return max === Infinity ? Math.min(length, min) : length;
}

/**
 * Returns the one byte that can come next in a string at this position; -1 if there are several, or if that is not
 * known because a character of an arbitrary text is incomplete.
 */
export function forcedIn(language: StringLanguage, place: Readonly<Place>): number {
  const { state, length, pending } = place;
  if (pending === PLAIN) {
    const only = language.onlyNext(state, length);
    if (only >= 0) return firstByte(only);
    const ends = language.accepts(state, length) && !language.allowsAny(state, length, 0, 0x10_ff_ff);
    return ends ? BYTE.quote : -1;
  }
  if (!language.dfa) return -1;
  const possible: number[] = [];
  const [from, to] = pending === ESCAPE ? [0x20, 0x7e] : [0x80, 0xbf];
  for (let byte = from; byte <= to && possible.length < 2; byte++) {
    if (advance(language, { ...place }, byte) === 'on') possible.push(byte);
  }
  return possible.length === 1 ? at(possible, 0) : -1;
}
