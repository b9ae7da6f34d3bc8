import { Fuel } from '../fuel.ts';

import { StringLanguage } from '../text/string-language.ts';
import { BYTE, Frame } from './frame.ts';
import type { ObjectFrame } from './object-frame.ts';
import { advance, forcedIn, type Place } from './string-frame.ts';
import { completed, PLAIN } from './text-bytes.ts';
import { ValueFrame } from './value-frame.ts';

/** Members that an object may have beyond the declared ones. */
export const MOST_EXTRA_MEMBERS = 64;
const LONGEST_NAME = 64;

/** Names of members that the schema leaves open. */
export const MEMBER_NAME = new StringLanguage(null, 1, LONGEST_NAME, new Fuel());

/** In the name of a member that is not declared, its opening quote behind it. It must differ from all others. */
export class MemberNameFrame extends Frame {
  readonly object: ObjectFrame;
  readonly place: Readonly<Place>;
  /** The whole characters so far. */
  readonly text: string;

  private constructor(object: ObjectFrame, place: Place, text: string) {
    super(object.automaton, object, object.depth);
    this.object = object;
    this.place = place;
    this.text = text;
  }

  static first(object: ObjectFrame): MemberNameFrame {
    return MemberNameFrame.make(object, { state: 0, length: 0, pending: PLAIN }, '');
  }

  private static make(object: ObjectFrame, place: Place, text: string): MemberNameFrame {
    const key = `m${object.id},${place.pending},${text}`;
    return object.automaton.frame(key, () => new MemberNameFrame(object, place, text));
  }

  /** Names that must not come again. */
  taken(name: string): boolean {
    return this.object.extras.includes(name) || this.object.shape.members.some((one) => one.name === name);
  }

  override step(byte: number, into: Frame[]): void {
    const place = { ...this.place };
    const done = advance(MEMBER_NAME, place, byte);
    if (done === 'end') {
      if (!this.taken(this.text)) into.push(ColonFrame.after(this));
    } else if (done === 'on') {
      const text = place.length > this.place.length ? this.text + completed(this.place.pending, byte) : this.text;
      // At its longest the name has to end, so it must not be taken.
      if (place.length < LONGEST_NAME || !this.taken(text)) into.push(MemberNameFrame.make(this.object, place, text));
    }
  }

  /** Whether the automaton goes along these bytes from here. */
  reads(bytes: Uint8Array): boolean {
    let state = this.automaton.state([this]);
    for (const byte of bytes) state = state?.next(byte) ?? null;
    return state !== null;
  }

  override forced(): number {
    return forcedIn(MEMBER_NAME, this.place);
  }
}

/** Between the name of a member and its value. */
export class ColonFrame extends Frame {
  private readonly object: ObjectFrame;
  readonly name: string;

  private constructor(object: ObjectFrame, name: string) {
    super(object.automaton, object, object.depth);
    this.object = object;
    this.name = name;
  }

  static after({ object, text }: MemberNameFrame): ColonFrame {
    return object.automaton.frame(`c${object.id},${text}`, () => new ColonFrame(object, text));
  }

  override step(byte: number, into: Frame[]): void {
    if (byte !== BYTE.colon) return;
    into.push(ValueFrame.at(this.object.shape.extra!, this.object.afterExtra(this.name), this.depth));
  }

  override forced(): number {
    return BYTE.colon;
  }
}
