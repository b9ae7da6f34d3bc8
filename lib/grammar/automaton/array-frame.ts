import { at } from '../../at.ts';
import { type ArrayAlternative, itemAt, type LiteralsAlternative, type Node } from '../resolve/node.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame, single } from './frame.ts';
import { FreshTextFrame, type TextOwner } from './fresh-text-frame.ts';
import { LiteralFrame, literalsOf } from './literal-frame.ts';
import { FreshNumberFrame, type ItemOwner } from './number-frame.ts';

/** Describes a position in an array. */
interface ArrayPlace {
  shape: ArrayAlternative;
  /** Number of items read. In an unbounded array, it stops rising once all required and prefix items are read. */
  count: number;
  /** Says what may come next: an item or the end (`first`), a comma or the end (`comma`), or an item (`item`). */
  expects: 'first' | 'comma' | 'item';
  /** The items so far, each as a text that only equal values share; empty unless all items must differ. */
  used: readonly string[];
  after: Frame;
  depth: number;
}

/** Reads an array. */
export class ArrayFrame extends OpenFrame implements TextOwner, ItemOwner {
  readonly #place: ArrayPlace;

  private constructor(place: ArrayPlace) {
    super(place.after, place.depth);
    this.#place = place;
  }

  /**
   * Returns the frame after the opening bracket.
   *
   * @param depth number of objects and arrays that are open inside the array, itself included
   */
  static first(shape: ArrayAlternative, after: Frame, depth: number): ArrayFrame {
    return ArrayFrame.#make({ shape, count: 0, expects: 'first', used: [], after, depth });
  }

  static #make(place: ArrayPlace): ArrayFrame {
    const { shape, count, expects, used, after } = place;
    // After the prefix and the required items, every further item of an unbounded array leads to the same state.
    const seen = shape.max === Infinity ? Math.min(count, Math.max(shape.min, shape.prefix.length)) : count;
    const key = `a${idOf(shape)},${seen},${expects},${after.id}${used.length > 0 ? JSON.stringify(used) : ''}`;
    return after.table.frame(key, () => new ArrayFrame({ ...place, count: seen }));
  }

  get used(): readonly string[] {
    return this.#place.used;
  }

  get #node(): Node {
    return itemAt(this.#place.shape, this.#place.count);
  }

  get #mayEnd(): boolean {
    const { expects, count, shape } = this.#place;
    return expects !== 'item' && count >= shape.min;
  }

  get #mayGoOn(): boolean {
    const { count, shape } = this.#place;
    if (count >= shape.max || !canBeWritten(this.#node, this.depth)) return false;
    return !shape.unique || this.#fresh.length > 0;
  }

  #item(): Frame {
    return this.table.value(this.#node, this.#next(this.used), this.depth);
  }

  /** Returns the frame after one more item. */
  #next(used: readonly string[]): ArrayFrame {
    return ArrayFrame.#make({ ...this.#place, count: this.#place.count + 1, expects: 'comma', used });
  }

  /** The frames that read the next item, where it must differ from those before. A text is read after its quote. */
  get #fresh(): readonly Frame[] {
    this.#freshItems ??= this.#node.alternatives.flatMap((one): Frame | readonly Frame[] => {
      if (!canBeWritten(one, this.depth)) return [];
      if (one.kind === 'string') return FreshTextFrame.first(this, one.language) ?? [];
      if (one.kind === 'number') return FreshNumberFrame.first(this, one.language) ?? [];
      return one.kind === 'literals' ? this.#freshLiterals(one) : [];
    });
    return this.#freshItems;
  }
  #freshItems: readonly Frame[] | undefined;

  #freshLiterals(alternative: LiteralsAlternative): readonly Frame[] {
    const { texts, keys } = literalsOf(alternative);
    const frame = LiteralFrame.first({
      key: `u${this.id},${idOf(texts)}`,
      texts,
      parent: this,
      allows: (index) => !this.used.includes(at(keys, index)),
      behind: (index) => this.afterItem(at(keys, index)),
    });
    return frame.possible ? [frame] : [];
  }

  /** The strings among the items so far. */
  get taken(): ReadonlySet<string> {
    this.#texts ??= new Set(this.used.flatMap((text) => (text.startsWith('"') ? String(JSON.parse(text)) : [])));
    return this.#texts;
  }
  #texts: ReadonlySet<string> | undefined;

  afterText(text: string, _: StringLanguage): Frame {
    return this.afterItem(JSON.stringify(text));
  }

  /** Returns the frame after an item with this canonical text. */
  afterItem(text: string): Frame {
    return this.#next([...this.used, text]);
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeList && this.#mayEnd) into.push(this.after);
    else if (!this.#mayGoOn) return;
    else if (this.#place.expects === 'comma') {
      if (byte === BYTE.comma) into.push(ArrayFrame.#make({ ...this.#place, expects: 'item' }));
    } else if (!this.#place.shape.unique) this.#item().step(byte, into);
    else {
      for (const frame of this.#fresh) {
        if (!(frame instanceof FreshTextFrame)) frame.step(byte, into);
        else if (byte === BYTE.quote) into.push(frame);
      }
    }
  }

  override forced(): number {
    if (!this.#mayGoOn) return this.#mayEnd ? BYTE.closeList : -1;
    if (this.#mayEnd) return -1;
    if (this.#place.expects === 'comma') return BYTE.comma;
    if (!this.#place.shape.unique) return this.#item().forced();
    return single(new Set(this.#fresh.map((one) => (one instanceof FreshTextFrame ? BYTE.quote : one.forced()))));
  }
}
