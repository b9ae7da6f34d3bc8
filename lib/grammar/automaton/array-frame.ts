import { type ArrayAlternative, itemAt } from '../resolve/node.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame, single } from './frame.ts';
import { FreshTextFrame, type TextOwner } from './fresh-text-frame.ts';
import { FreshLiteralFrame, FreshNumberFrame, type ItemOwner } from './fresh-value-frames.ts';

/**
 * Reads an array after `count` items. `expects` says what may come next: an item or the end (`first`), a comma or the
 * end (`comma`), or an item (`item`). In an unbounded array, `count` stops rising once all required and prefix items
 * are read.
 */
export class ArrayFrame extends OpenFrame implements TextOwner, ItemOwner {
  readonly #shape: ArrayAlternative;
  readonly count: number;
  readonly #expects: 'first' | 'comma' | 'item';
  /** The items so far, each as a text that only equal values share; empty unless all items must differ. */
  readonly used: readonly string[];

  private constructor(
    shape: ArrayAlternative,
    count: number,
    expects: 'first' | 'comma' | 'item',
    used: readonly string[],
    after: Frame,
    depth: number,
  ) {
    super(after, depth);
    this.used = used;
    this.#shape = shape;
    this.count = count;
    this.#expects = expects;
  }

  /**
   * Returns the frame after the opening bracket.
   *
   * @param depth number of objects and arrays that are open inside the array, itself included
   */
  static first(shape: ArrayAlternative, after: Frame, depth: number): ArrayFrame {
    return ArrayFrame.#make(shape, 0, 'first', [], after, depth);
  }

  static #make(
    shape: ArrayAlternative,
    count: number,
    expects: 'first' | 'comma' | 'item',
    used: readonly string[],
    after: Frame,
    depth: number,
  ): ArrayFrame {
    // After the prefix and the required items, every further item of an unbounded array leads to the same state.
    const seen = shape.max === Infinity ? Math.min(count, Math.max(shape.min, shape.prefix.length)) : count;
    const key = `a${idOf(shape)},${seen},${expects},${after.id}${used.length > 0 ? JSON.stringify(used) : ''}`;
    return after.table.frame(key, () => new ArrayFrame(shape, seen, expects, used, after, depth));
  }

  get #mayEnd(): boolean {
    return this.#expects !== 'item' && this.count >= this.#shape.min;
  }

  get #mayGoOn(): boolean {
    const { count, depth } = this;
    const shape = this.#shape;
    if (count >= shape.max || !canBeWritten(itemAt(shape, count), depth)) return false;
    return !shape.unique || this.#fresh.length > 0;
  }

  #item(): Frame {
    const { count, used, after, depth } = this;
    const shape = this.#shape;
    return this.table.value(
      itemAt(shape, count),
      ArrayFrame.#make(shape, count + 1, 'comma', used, after, depth),
      depth,
    );
  }

  /** The frames that read the next item, where it must differ from those before. A text is read after its quote. */
  get #fresh(): readonly Frame[] {
    this.#freshItems ??= itemAt(this.#shape, this.count).alternatives.flatMap((one): Frame | readonly Frame[] => {
      if (!canBeWritten(one, this.depth)) return [];
      if (one.kind === 'string') return FreshTextFrame.first(this, one.language) ?? [];
      if (one.kind === 'number') return FreshNumberFrame.first(this, one.language) ?? [];
      return one.kind === 'literals' ? (FreshLiteralFrame.first(this, one) ?? []) : [];
    });
    return this.#freshItems;
  }
  #freshItems: readonly Frame[] | undefined;

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
    const { count, used, after, depth } = this;
    const shape = this.#shape;
    return ArrayFrame.#make(shape, count + 1, 'comma', [...used, text], after, depth);
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeList && this.#mayEnd) into.push(this.after);
    else if (!this.#mayGoOn) return;
    else if (this.#expects === 'comma') {
      const { count, used, after, depth } = this;
      const shape = this.#shape;
      if (byte === BYTE.comma) into.push(ArrayFrame.#make(shape, count, 'item', used, after, depth));
    } else if (!this.#shape.unique) this.#item().step(byte, into);
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
    if (this.#expects === 'comma') return BYTE.comma;
    if (!this.#shape.unique) return this.#item().forced();
    return single(new Set(this.#fresh.map((one) => (one instanceof FreshTextFrame ? BYTE.quote : one.forced()))));
  }
}
