import { at } from '../../at.ts';
import type { TaggedObject } from '../tagged-object.ts';
import { type Frame, idOf, OpenFrame, single } from './frame.ts';
import { LiteralFrame } from './literal-frame.ts';
import { RawTextFrame } from './raw-text-frame.ts';

/**
 * Reads an object whose members are written between tags (`Tags`), in a fixed order. The next member is the one at
 * `#index` or a later one, up to the next required one.
 */
export class TaggedObjectFrame extends OpenFrame {
  readonly #object: TaggedObject;
  readonly #index: number;
  #options: readonly Frame[] | undefined;

  private constructor(object: TaggedObject, index: number, after: Frame) {
    super(after, after.depth);
    this.#object = object;
    this.#index = index;
  }

  /** Returns the frame before the member at `index`; `after` if there is none. */
  static at(object: TaggedObject, index: number, after: Frame): Frame {
    if (index === object.members.length) return after;
    return after.table.frame(
      `t${idOf(object)},${index},${after.id}`,
      () => new TaggedObjectFrame(object, index, after),
    );
  }

  override step(byte: number, into: Frame[]): void {
    for (const option of this.#all()) option.step(byte, into);
  }

  override forced(): number {
    return single(new Set(this.#all().map((option) => option.forced())));
  }

  override get mayEndAnswer(): boolean {
    return this.#all().includes(this.after) && this.after.mayEndAnswer;
  }

  /**
   * Returns the frames of all that can come next: each possible member, in each form of its value, and the text after
   * the object.
   */
  #all(): readonly Frame[] {
    this.#options ??= this.#found();
    return this.#options;
  }

  #found(): Frame[] {
    const { members } = this.#object;
    const options: Frame[] = [];
    for (let i = this.#index; i < members.length; i++) {
      options.push(...this.#member(i));
      if (at(members, i).required) return options;
    }
    return [...options, this.after];
  }

  #member(index: number): Frame[] {
    const object = this.#object;
    const { begin, texts, languages, json } = at(object.members, index);
    const close = LiteralFrame.first(object.close, TaggedObjectFrame.at(object, index + 1, this.after));
    const values: Frame[] = languages.map((language) => RawTextFrame.at(language, close));
    if (texts.length > 0) values.push(LiteralFrame.first(texts, close));
    if (json) values.push(this.table.value(json, close, 1));
    return values.map((value) => LiteralFrame.first(begin, value));
  }
}
