import { type ArrayAlternative, itemAt } from '../resolve/node.ts';
import { BYTE, canBeWritten, type Frame, idOf, OpenFrame } from './frame.ts';

/**
 * Reads an array after `count` items. `expects` says what may come next: an item or the end (`first`), a comma or the
 * end (`comma`), or an item (`item`). In an unbounded array, `count` stops rising once all required and prefix items
 * are read.
 */
export class ArrayFrame extends OpenFrame {
  private readonly shape: ArrayAlternative;
  readonly count: number;
  private readonly expects: 'first' | 'comma' | 'item';

  private constructor(
    shape: ArrayAlternative,
    count: number,
    expects: ArrayFrame['expects'],
    after: Frame,
    depth: number,
  ) {
    super(after, depth);
    this.shape = shape;
    this.count = count;
    this.expects = expects;
  }

  /**
   * Returns the frame after the opening bracket.
   *
   * @param depth number of objects and arrays that are open inside the array, itself included
   */
  static first(shape: ArrayAlternative, after: Frame, depth: number): ArrayFrame {
    return ArrayFrame.make(shape, 0, 'first', after, depth);
  }

  private static make(
    shape: ArrayAlternative,
    count: number,
    expects: ArrayFrame['expects'],
    after: Frame,
    depth: number,
  ) {
    // After the prefix and the required items, every further item of an unbounded array leads to the same state.
    const seen = shape.max === Infinity ? Math.min(count, Math.max(shape.min, shape.prefix.length)) : count;
    const key = `a${idOf(shape)},${seen},${expects},${after.id}`;
    return after.table.frame(key, () => new ArrayFrame(shape, seen, expects, after, depth));
  }

  private get mayEnd(): boolean {
    return this.expects !== 'item' && this.count >= this.shape.min;
  }

  private get mayGoOn(): boolean {
    return this.count < this.shape.max && canBeWritten(itemAt(this.shape, this.count), this.depth);
  }

  private item(): Frame {
    const { shape, count, after, depth } = this;
    return this.table.value(itemAt(shape, count), ArrayFrame.make(shape, count + 1, 'comma', after, depth), depth);
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeList && this.mayEnd) into.push(this.after);
    else if (!this.mayGoOn) return;
    else if (this.expects !== 'comma') this.item().step(byte, into);
    else if (byte === BYTE.comma) {
      into.push(ArrayFrame.make(this.shape, this.count, 'item', this.after, this.depth));
    }
  }

  override forced(): number {
    if (!this.mayGoOn) return this.mayEnd ? BYTE.closeList : -1;
    if (this.mayEnd) return -1;
    return this.expects === 'comma' ? BYTE.comma : this.item().forced();
  }
}
