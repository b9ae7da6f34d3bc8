import { at } from '../../at.ts';
import { MOST_EXTRA_MEMBERS } from '../resolve/measure.ts';
import type { Node, ObjectAlternative } from '../resolve/node.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame } from './frame.ts';
import { FreshTextFrame, type TextOwner } from './fresh-text-frame.ts';
import { type EnclosingObject, KeyFrame, keyTexts } from './key-frame.ts';

/**
 * Reads an object. The next declared member is `index` or a later one, up to the next required one. `expects` says what
 * may come next: a member or the end (`first`), a comma or the end (`comma`), or a member (`member`).
 */
export class ObjectFrame extends OpenFrame implements EnclosingObject, TextOwner {
  readonly shape: ObjectAlternative;
  readonly index: number;
  readonly #expects: 'first' | 'comma' | 'member';
  /** Names of the undeclared members read so far; no name occurs twice. */
  readonly #extras: readonly string[];
  /** Number of members read so far; 0 if the object does not bound it. */
  readonly #count: number;

  private constructor(
    shape: ObjectAlternative,
    index: number,
    expects: 'first' | 'comma' | 'member',
    extras: readonly string[],
    count: number,
    after: Frame,
    depth: number,
  ) {
    super(after, depth);
    this.#count = count;
    this.shape = shape;
    this.index = index;
    this.#expects = expects;
    this.#extras = extras;
  }

  /**
   * Returns the frame after the opening brace.
   *
   * @param depth number of objects and arrays that are open inside the object, itself included
   */
  static first(shape: ObjectAlternative, after: Frame, depth: number): ObjectFrame {
    return ObjectFrame.#make(shape, 0, 'first', [], 0, after, depth);
  }

  static #make(
    shape: ObjectAlternative,
    index: number,
    expects: 'first' | 'comma' | 'member',
    extras: readonly string[],
    count: number,
    after: Frame,
    depth: number,
  ): ObjectFrame {
    const counted = shape.min === 0 && shape.max === Infinity ? 0 : count;
    const names = extras.length > 0 ? JSON.stringify(extras) : '';
    const key = `o${idOf(shape)},${index},${expects},${counted},${after.id}${names}`;
    return after.table.frame(key, () => new ObjectFrame(shape, index, expects, extras, counted, after, depth));
  }

  /** Returns the frame of this object after the value of its declared member at this index. */
  afterMember(index: number): ObjectFrame {
    return ObjectFrame.#make(this.shape, index + 1, 'comma', this.#extras, this.#count + 1, this.after, this.depth);
  }

  /** Returns the frame of this object after the value of an undeclared member of this name. */
  afterExtra(name: string): ObjectFrame {
    const { shape, after, depth } = this;
    const extras = this.#extras;
    const count = this.#count;
    return ObjectFrame.#make(shape, shape.members.length, 'comma', [...extras, name], count + 1, after, depth);
  }

  /** Names that an undeclared member may not have, because the object has or declares them. */
  get taken(): ReadonlySet<string> {
    this.#names ??= new Set([...this.#extras, ...this.shape.members.map(({ name }) => name)]);
    return this.#names;
  }
  #names: ReadonlySet<string> | undefined;

  afterText(name: string, language: StringLanguage): Frame {
    const extra = this.shape.extras.findIndex(({ names }) => names === language);
    const { node } = at(this.shape.extras, extra);
    return this.table.frame(`c${this.id},${name}`, () => new ColonFrame(this, node, name));
  }

  /** Tells whether the declared member at this index may come next. */
  allows(index: number): boolean {
    return (
      index >= this.index &&
      index <= this.#nextRequired &&
      canBeWritten(at(this.shape.members, index).node, this.depth) &&
      this.#mayAdd(index)
    );
  }

  /**
   * Tells whether the object can still get as many members as it needs, and not more than it may have, if its next one
   * is the declared member at this index, or an undeclared one for the number of members.
   */
  #mayAdd(index: number): boolean {
    const { members, min, max } = this.shape;
    if (min === 0 && max === Infinity) return true;
    const later = members.slice(index + 1);
    const after = this.#count + 1;
    if (after + later.filter(({ required }) => required).length > max) return false;
    if (after >= min) return true;
    const declared = later.filter(({ node }) => canBeWritten(node, this.depth)).length;
    return after + declared + this.#extrasLeft(min - after - declared, index === members.length ? 1 : 0) >= min;
  }

  /** Counts the undeclared members that can still be written, up to `most`, after `begun` more of them. */
  #extrasLeft(most: number, begun: number): number {
    if (most <= 0) return 0;
    const room = MOST_EXTRA_MEMBERS - this.#extras.length - begun;
    const taken = this.taken.size + begun;
    const free = this.shape.extras
      .filter(({ node }) => canBeWritten(node, this.depth))
      .reduce((sum, { names }) => sum + Math.max(0, names.count(taken + most) - taken), 0);
    return Math.min(room, free);
  }

  /** Returns the index of the next required member; the number of members if there is none. */
  get #nextRequired(): number {
    return at(keyTexts(this.shape).nextRequired, this.index);
  }

  get mayEnd(): boolean {
    return this.#expects !== 'member' && this.#noneRequired && this.#count >= this.shape.min;
  }

  get #noneRequired(): boolean {
    return this.#nextRequired === this.shape.members.length;
  }

  get #keys(): KeyFrame | null {
    return KeyFrame.first(this);
  }

  get #extraNames(): FreshTextFrame[] {
    const { extras, members } = this.shape;
    if (!this.#noneRequired || this.#extras.length >= MOST_EXTRA_MEMBERS) return [];
    if (extras.length === 0 || !this.#mayAdd(members.length)) return [];
    return extras.flatMap(({ names, node }) =>
      canBeWritten(node, this.depth) ? (FreshTextFrame.first(this, names) ?? []) : [],
    );
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeObject && this.mayEnd) into.push(this.after);
    const keys = this.#keys;
    const extraNames = this.#extraNames;
    if (!keys && extraNames.length === 0) return;
    if (this.#expects === 'comma') {
      if (byte === BYTE.comma) {
        const { shape, index, after, depth } = this;
        const extras = this.#extras;
        const count = this.#count;
        into.push(ObjectFrame.#make(shape, index, 'member', extras, count, after, depth));
      }
    } else if (byte === BYTE.quote) {
      if (keys) into.push(keys);
      into.push(...extraNames);
    }
  }

  override forced(): number {
    const goesOn = this.#keys !== null || this.#extraNames.length > 0;
    if (this.mayEnd) return goesOn ? -1 : BYTE.closeObject;
    return this.#expects === 'comma' ? BYTE.comma : BYTE.quote;
  }
}

/** Expects the colon between the name and the value of an undeclared member. */
export class ColonFrame extends OpenFrame {
  readonly #object: ObjectFrame;
  readonly #value: Node;
  readonly name: string;

  constructor(object: ObjectFrame, value: Node, name: string) {
    super(object, object.depth);
    this.#object = object;
    this.#value = value;
    this.name = name;
  }

  override step(byte: number, into: Frame[]): void {
    if (byte !== BYTE.colon) return;
    into.push(this.table.value(this.#value, this.#object.afterExtra(this.name), this.depth));
  }

  override forced(): number {
    return BYTE.colon;
  }
}
