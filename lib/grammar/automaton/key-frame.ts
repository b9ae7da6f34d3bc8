import { at } from '../../at.ts';
import type { ObjectAlternative } from '../resolve/node.ts';
import { type Frame, OpenFrame, single } from './frame.ts';
import { compareBytes, narrow, type SortedTexts } from './literal-frame.ts';

/** Represents an object of which a declared member's name is being read. */
export interface EnclosingObject extends Frame {
  readonly shape: ObjectAlternative;
  /** Tells whether the declared member at this index of `shape.members` may come next. */
  allows(index: number): boolean;
  /** Returns the frame of this object after the value of its declared member at this index. */
  afterMember(index: number): Frame;
}

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
export function keyTexts(shape: ObjectAlternative): KeyTexts {
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

/** Reads the name of a declared member after its opening quote: the rest of its JSON text and the colon. */
export class KeyFrame extends OpenFrame {
  readonly object: EnclosingObject;
  readonly #low: number;
  readonly #high: number;
  /** Number of bytes read so far of the name's JSON text, without the opening quote. */
  readonly length: number;
  /** Bytes that may come next: each leads to a member that is allowed here. */
  readonly #bytes: ReadonlySet<number>;

  private constructor(object: EnclosingObject, low: number, high: number, length: number, bytes: ReadonlySet<number>) {
    super(object, object.depth);
    this.object = object;
    this.#low = low;
    this.#high = high;
    this.length = length;
    this.#bytes = bytes;
  }

  /** Returns the frame after the opening quote; null if no declared member may come next. */
  static first(object: EnclosingObject): KeyFrame | null {
    return KeyFrame.#make(object, 0, object.shape.members.length, 0);
  }

  static #make(object: EnclosingObject, low: number, high: number, length: number): KeyFrame | null {
    const frame = object.table.frame(`k${object.id},${low},${high},${length}`, () => {
      const { texts, members } = keyTexts(object.shape);
      const bytes = new Set<number>();
      for (let i = low; i < high; i++) if (object.allows(at(members, i))) bytes.add(at(at(texts, i), length));
      return new KeyFrame(object, low, high, length, bytes);
    });
    return frame.#bytes.size > 0 ? frame : null;
  }

  override step(byte: number, into: Frame[]): void {
    if (!this.#bytes.has(byte)) return;
    const { texts, members } = keyTexts(this.object.shape);
    const [low, high] = narrow(texts, this.#low, this.#high, this.length, byte);
    if (at(texts, low).length > this.length + 1) into.push(KeyFrame.#make(this.object, low, high, this.length + 1)!);
    else {
      const index = at(members, low);
      into.push(
        this.table.value(at(this.object.shape.members, index).node, this.object.afterMember(index), this.depth),
      );
    }
  }

  override forced(): number {
    return single(this.#bytes);
  }
}
