import { at } from '../../at.ts';
import { MOST_EXTRA_MEMBERS } from '../resolve/measure.ts';
import type { Node, ObjectAlternative } from '../resolve/node.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame } from './frame.ts';
import { FreshTextFrame, type TextOwner } from './fresh-text-frame.ts';
import { compareBytes, LiteralFrame, type SortedTexts } from './literal-frame.ts';

interface KeyTexts {
  /** The text `name":` of every declared member, without the opening quote, in byte order. */
  texts: SortedTexts;
  /** For each text, the index of its member in `ObjectAlternative.members`. */
  members: readonly number[];
  /**
   * For each member index, the index of the first required member from there on; the number of members if there is
   * none.
   */
  nextRequired: readonly number[];
}

const encoder = new TextEncoder();
const cache = new WeakMap<ObjectAlternative, KeyTexts>();

/** Returns the texts of an object's declared keys; always the same object for the same `shape`. */
function keyTexts(shape: ObjectAlternative): KeyTexts {
  let found = cache.get(shape);
  if (!found) {
    const all = shape.members.map(({ name }, index) => ({
      index,
      text: encoder.encode(`${JSON.stringify(name)}:`).subarray(1),
    }));
    all.sort((a, b) => compareBytes(a.text, b.text));
    const nextRequired = [shape.members.length];
    for (let i = shape.members.length - 1; i >= 0; i--)
      nextRequired.unshift(at(shape.members, i).required ? i : at(nextRequired, 0));
    found = { texts: all.map(({ text }) => text), members: all.map(({ index }) => index), nextRequired };
    cache.set(shape, found);
  }
  return found;
}

/** Describes a position in an object. */
interface ObjectPlace {
  shape: ObjectAlternative;
  /** The next declared member is this one or a later one, up to the next required one. */
  index: number;
  /** Says what may come next: a member or the end (`first`), a comma or the end (`comma`), or a member (`member`). */
  expects: 'first' | 'comma' | 'member';
  /** Names of the undeclared members read so far; no name occurs twice. */
  extras: readonly string[];
  /** Number of members read so far; 0 if the object does not bound it. */
  count: number;
  after: Frame;
  depth: number;
}

/** Reads an object. */
export class ObjectFrame extends OpenFrame implements TextOwner {
  readonly #place: ObjectPlace;

  private constructor(place: ObjectPlace) {
    super(place.after, place.depth);
    this.#place = place;
  }

  /**
   * Returns the frame after the opening brace.
   *
   * @param depth number of objects and arrays that are open inside the object, itself included
   */
  static first(shape: ObjectAlternative, after: Frame, depth: number): ObjectFrame {
    return ObjectFrame.#make({ shape, index: 0, expects: 'first', extras: [], count: 0, after, depth });
  }

  static #make(place: ObjectPlace): ObjectFrame {
    const { shape, index, expects, extras, after } = place;
    const count = shape.min === 0 && shape.max === Infinity ? 0 : place.count;
    const names = extras.length > 0 ? JSON.stringify(extras) : '';
    const key = `o${idOf(shape)},${index},${expects},${count},${after.id}${names}`;
    return after.table.frame(key, () => new ObjectFrame({ ...place, count }));
  }

  get shape(): ObjectAlternative {
    return this.#place.shape;
  }

  get index(): number {
    return this.#place.index;
  }

  /** Returns the frame of this object after one more member, before which `index` and `extras` change. */
  #next(change: Partial<ObjectPlace>): ObjectFrame {
    return ObjectFrame.#make({ ...this.#place, ...change, expects: 'comma', count: this.#place.count + 1 });
  }

  /** Returns the frame of this object after the value of an undeclared member of this name. */
  afterExtra(name: string): ObjectFrame {
    return this.#next({ index: this.shape.members.length, extras: [...this.#place.extras, name] });
  }

  /** Names that an undeclared member may not have, because the object has or declares them. */
  get taken(): ReadonlySet<string> {
    this.#names ??= new Set([...this.#place.extras, ...this.shape.members.map(({ name }) => name)]);
    return this.#names;
  }
  #names: ReadonlySet<string> | undefined;

  afterText(name: string, language: StringLanguage): Frame {
    const extra = this.shape.extras.findIndex(({ names }) => names === language);
    const { node } = at(this.shape.extras, extra);
    return this.table.frame(`c${this.id},${name}`, () => new ColonFrame(this, node, name));
  }

  /** Tells whether the declared member at this index may come next. */
  #allows(index: number): boolean {
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
    const after = this.#place.count + 1;
    if (after + later.filter(({ required }) => required).length > max) return false;
    if (after >= min) return true;
    const declared = later.filter(({ node }) => canBeWritten(node, this.depth)).length;
    return after + declared + this.#extrasLeft(min - after - declared, index === members.length ? 1 : 0) >= min;
  }

  /** Counts the undeclared members that can still be written, up to `most`, after `begun` more of them. */
  #extrasLeft(most: number, begun: number): number {
    if (most <= 0) return 0;
    const room = MOST_EXTRA_MEMBERS - this.#place.extras.length - begun;
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
    const { expects, count, shape } = this.#place;
    return expects !== 'member' && this.#noneRequired && count >= shape.min;
  }

  get #noneRequired(): boolean {
    return this.#nextRequired === this.shape.members.length;
  }

  /** The frame that reads the name of a declared member after its opening quote; null if none may come next. */
  get #keys(): LiteralFrame | null {
    const { texts, members } = keyTexts(this.shape);
    const frame = LiteralFrame.first({
      key: `k${this.id}`,
      texts,
      parent: this,
      isName: true,
      allows: (i) => this.#allows(at(members, i)),
      behind: (i) => this.#member(at(members, i)),
    });
    return frame.possible ? frame : null;
  }

  /** Returns the frame of the value of the declared member at this index. */
  #member(index: number): Frame {
    return this.table.value(at(this.shape.members, index).node, this.#next({ index: index + 1 }), this.depth);
  }

  get #extraNames(): FreshTextFrame[] {
    const { extras, members } = this.shape;
    if (!this.#noneRequired || this.#place.extras.length >= MOST_EXTRA_MEMBERS) return [];
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
    if (this.#place.expects === 'comma') {
      if (byte === BYTE.comma) into.push(ObjectFrame.#make({ ...this.#place, expects: 'member' }));
    } else if (byte === BYTE.quote) {
      if (keys) into.push(keys);
      into.push(...extraNames);
    }
  }

  override forced(): number {
    const goesOn = this.#keys !== null || this.#extraNames.length > 0;
    if (this.mayEnd) return goesOn ? -1 : BYTE.closeObject;
    return this.#place.expects === 'comma' ? BYTE.comma : BYTE.quote;
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
