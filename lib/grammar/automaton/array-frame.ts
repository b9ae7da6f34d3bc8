import { type ArrayAlternative, itemAt } from '../resolve/node.ts';
import { BYTE, Frame, idOf } from './frame.ts';
import { canStand, ValueFrame } from './value-frame.ts';

/** Inside a list, `count` items behind it. `expects`: what comes: an item or the end, a comma or the end, or an item. */
export class ArrayFrame extends Frame {
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
    super(after.automaton, after, depth);
    this.shape = shape;
    this.count = count;
    this.expects = expects;
  }

  /** @param depth objects and lists open inside the list, itself included */
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
    // Behind the prefix and the items asked for, an endless list is the same after every item.
    const seen = shape.max === Infinity ? Math.min(count, Math.max(shape.min, shape.prefix.length)) : count;
    const key = `a${idOf(shape)},${seen},${expects},${after.id}`;
    return after.automaton.frame(key, () => new ArrayFrame(shape, seen, expects, after, depth));
  }

  private get mayEnd(): boolean {
    return this.expects !== 'item' && this.count >= this.shape.min;
  }

  private get mayGoOn(): boolean {
    return this.count < this.shape.max && canStand(itemAt(this.shape, this.count), this.depth);
  }

  private item(): ValueFrame {
    const { shape, count, depth } = this;
    return ValueFrame.at(itemAt(shape, count), ArrayFrame.make(shape, count + 1, 'comma', this.parent!, depth), depth);
  }

  override step(byte: number, into: Frame[]): void {
    if (byte === BYTE.closeList && this.mayEnd) into.push(this.parent!);
    else if (!this.mayGoOn) return;
    else if (this.expects !== 'comma') this.item().step(byte, into);
    else if (byte === BYTE.comma) {
      into.push(ArrayFrame.make(this.shape, this.count, 'item', this.parent!, this.depth));
    }
  }

  override forced(): number {
    if (!this.mayGoOn) return this.mayEnd ? BYTE.closeList : -1;
    if (this.mayEnd) return -1;
    return this.expects === 'comma' ? BYTE.comma : this.item().forced();
  }
}
