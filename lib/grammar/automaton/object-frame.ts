import { at } from '../../at.ts';
import type { ObjectAlternative } from '../resolve/node.ts';
import type { EnclosingObject } from './enclosing-object.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame } from './frame.ts';
import { KeyFrame, keyTexts } from './key-frame.ts';
import { MemberNameFrame, MOST_EXTRA_MEMBERS } from './member-name-frame.ts';

/**
 * Reads an object. The next declared member is `index` or a later one, up to the next required one. `expects` says what
 * may come next: a member or the end (`first`), a comma or the end (`comma`), or a member (`member`).
 */
export class ObjectFrame extends OpenFrame implements EnclosingObject {
  readonly shape: ObjectAlternative;
  readonly index: number;
  private readonly expects: 'first' | 'comma' | 'member';
  /** Names of the undeclared members read so far; no name occurs twice. */
  readonly extras: readonly string[];

  private constructor(
    shape: ObjectAlternative,
    index: number,
    expects: ObjectFrame['expects'],
    extras: readonly string[],
    after: Frame,
    depth: number,
  ) {
    super(after, depth);
    this.shape = shape;
    this.index = index;
    this.expects = expects;
    this.extras = extras;
  }

  /**
   * Returns the frame after the opening brace.
   *
   * @param depth number of objects and arrays that are open inside the object, itself included
   */
  static first(shape: ObjectAlternative, after: Frame, depth: number): ObjectFrame {
    return ObjectFrame.make(shape, 0, 'first', [], after, depth);
  }

  private static make(
    shape: ObjectAlternative,
    index: number,
    expects: ObjectFrame['expects'],
    extras: readonly string[],
    after: Frame,
    depth: number,
  ): ObjectFrame {
    const key = `o${idOf(shape)},${index},${expects},${after.id}${extras.length > 0 ? JSON.stringify(extras) : ''}`;
    return after.table.frame(key, () => new ObjectFrame(shape, index, expects, extras, after, depth));
  }

  /** Returns the frame of this object after the value of its declared member at this index. */
  afterMember(index: number): ObjectFrame {
    return ObjectFrame.make(this.shape, index + 1, 'comma', this.extras, this.after, this.depth);
  }

  /** Returns the frame of this object after the value of an undeclared member of this name. */
  afterExtra(name: string): ObjectFrame {
    const { shape, extras, after, depth } = this;
    return ObjectFrame.make(shape, shape.members.length, 'comma', [...extras, name], after, depth);
  }

  /** Tells whether the declared member at this index may come next. */
  allows(index: number): boolean {
    return (
      index >= this.index && index <= this.nextRequired && canBeWritten(at(this.shape.members, index).node, this.depth)
    );
  }

  /** Returns the index of the next required member; the number of members if there is none. */
  private get nextRequired(): number {
    return at(keyTexts(this.shape).nextRequired, this.index);
  }

  get mayEnd(): boolean {
    return this.expects !== 'member' && this.noneRequired;
  }

  private get noneRequired(): boolean {
    return this.nextRequired === this.shape.members.length;
  }

  private get keys(): KeyFrame | null {
    return KeyFrame.first(this);
  }

  private get extraName(): MemberNameFrame | null {
    const { extra } = this.shape;
    const possible =
      extra && this.noneRequired && this.extras.length < MOST_EXTRA_MEMBERS && canBeWritten(extra, this.depth);
    return possible ? MemberNameFrame.first(this, extra) : null;
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeObject && this.mayEnd) into.push(this.after);
    const { keys, extraName } = this;
    if (!keys && !extraName) return;
    if (this.expects === 'comma') {
      if (byte === BYTE.comma) {
        const { shape, index, extras, after, depth } = this;
        into.push(ObjectFrame.make(shape, index, 'member', extras, after, depth));
      }
    } else if (byte === BYTE.quote) {
      if (keys) into.push(keys);
      if (extraName) into.push(extraName);
    }
  }

  override forced(): number {
    const goesOn = this.keys !== null || this.extraName !== null;
    if (this.mayEnd) return goesOn ? -1 : BYTE.closeObject;
    return this.expects === 'comma' ? BYTE.comma : BYTE.quote;
  }
}
