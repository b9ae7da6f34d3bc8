import { Fuel } from '../fuel.ts';
import type { Node } from '../resolve/node.ts';
import { StringLanguage } from '../text/string-language.ts';
import type { EnclosingObject } from './enclosing-object.ts';
import { BYTE, type Frame, OpenFrame } from './frame.ts';
import { advance, forcedIn, type Place } from './string-frame.ts';
import { completed, PLAIN } from './text-bytes.ts';

/** Maximum number of undeclared members in one object. */
export const MOST_EXTRA_MEMBERS = 64;
const LONGEST_NAME = 64;

/** The names that undeclared members may have: any text of 1 to 64 characters. */
export const MEMBER_NAME = new StringLanguage(null, 1, LONGEST_NAME, new Fuel());

/**
 * Reads the name of an undeclared member after its opening quote, up to the closing quote. The name must differ from
 * those of all other members.
 */
export class MemberNameFrame extends OpenFrame {
  readonly object: EnclosingObject;
  /** The node of the member's value. */
  readonly value: Node;
  readonly place: Readonly<Place>;
  /** The complete characters of the name read so far. */
  readonly text: string;

  private constructor(object: EnclosingObject, value: Node, place: Place, text: string) {
    super(object, object.depth);
    this.object = object;
    this.value = value;
    this.place = place;
    this.text = text;
  }

  static first(object: EnclosingObject, value: Node): MemberNameFrame {
    return MemberNameFrame.make(object, value, { state: 0, length: 0, pending: PLAIN }, '');
  }

  private static make(object: EnclosingObject, value: Node, place: Place, text: string): MemberNameFrame {
    const key = `m${object.id},${place.pending},${text}`;
    return object.table.frame(key, () => new MemberNameFrame(object, value, place, text));
  }

  /** Tells whether the object already has, or declares, a member of this name. */
  taken(name: string): boolean {
    return this.object.extras.includes(name) || this.object.shape.members.some((one) => one.name === name);
  }

  override step(byte: number, into: Frame[]): void {
    const place = { ...this.place };
    const done = advance(MEMBER_NAME, place, byte);
    if (done === 'end') {
      if (!this.taken(this.text)) into.push(ColonFrame.behind(this));
    } else if (done === 'on') {
      const text = place.length > this.place.length ? this.text + completed(this.place.pending, byte) : this.text;
      // A name of the maximum length cannot continue, so it must already be a new one.
      if (place.length < LONGEST_NAME || !this.taken(text))
        into.push(MemberNameFrame.make(this.object, this.value, place, text));
    }
  }

  override forced(): number {
    return forcedIn(MEMBER_NAME, this.place);
  }
}

/** Expects the colon between the name and the value of an undeclared member. */
export class ColonFrame extends OpenFrame {
  private readonly object: EnclosingObject;
  private readonly value: Node;
  readonly name: string;

  private constructor(object: EnclosingObject, value: Node, name: string) {
    super(object, object.depth);
    this.object = object;
    this.value = value;
    this.name = name;
  }

  static behind({ object, value, text }: MemberNameFrame): ColonFrame {
    return object.table.frame(`c${object.id},${text}`, () => new ColonFrame(object, value, text));
  }

  override step(byte: number, into: Frame[]): void {
    if (byte !== BYTE.colon) return;
    into.push(this.table.value(this.value, this.object.afterExtra(this.name), this.depth));
  }

  override forced(): number {
    return BYTE.colon;
  }
}
