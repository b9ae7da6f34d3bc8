import type { Sequence } from './sequence.ts';

interface Item {
  token: number;
  /** Index of the item it follows; -1: the prefix. */
  after: number;
  /** Whether the logits behind it are wanted, and for which node of the options (0 where there are none). */
  read: number | null;
}

/** The tokens of one branch on their way into the model: a tree behind the prefix, fed in the order in which they came. */
export class BranchTokens {
  readonly #prefixLength: number;
  readonly #items: Item[] = [];
  /** Cells of the items that were fed. */
  readonly #cells: number[] = [];
  /** The item that the next token in line follows. */
  #end = -1;
  #unread = 0;
  #rollback: number | null = null;

  constructor(prefixLength: number) {
    this.#prefixLength = prefixLength;
  }

  /** Tokens that wait to be fed. */
  get waiting(): number {
    return this.#items.length - this.#cells.length;
  }

  /** Wanted logits that have not been delivered. */
  get unread(): number {
    return this.#unread;
  }

  get empty(): boolean {
    return this.#items.length === 0;
  }

  /** Tokens from the beginning of the prefix to where the line ends. */
  get length(): number {
    let depth = this.#prefixLength;
    for (let at = this.#end; at >= 0; at = this.#items[at]!.after) depth++;
    return depth;
  }

  /** Adds tokens at the end of the line. */
  push(tokens: readonly number[]): void {
    for (const token of tokens) {
      this.#items.push({ token, after: this.#end, read: null });
      this.#end = this.#items.length - 1;
    }
  }

  /** Adds a token beside the line, behind `after`, whose logits are wanted for `node`. Returns its index. */
  pushNode(token: number, after: number, node: number): number {
    this.#unread++;
    return this.#items.push({ token, after, read: node }) - 1;
  }

  /** Asks for the logits behind the last token. */
  ask(): void {
    this.#unread++;
    this.#items.at(-1)!.read = 0;
  }

  /** Lets the line go on behind the token that was added for `node`; false where there is none. */
  continueBehind(node: number): boolean {
    const at = this.#items.findIndex(({ read }) => read === node);
    if (at >= 0) this.#end = at;
    return at >= 0;
  }

  /** Forgets all but the first `count` tokens, which were fed; `takeRollback` then tells which cells are no longer needed. */
  keep(count: number): void {
    this.#items.length = count;
    this.#cells.length = count;
    this.#end = count - 1;
    this.#rollback = this.#cells[count - 1]! + 1;
  }

  /** Returns, once, the first cell that `keep` has freed; null: none. */
  takeRollback(): number | null {
    const cell = this.#rollback;
    this.#rollback = null;
    return cell;
  }

  /** Appends up to `room` waiting tokens to the sequence; returns the new cells whose logits are wanted, at most `rows`. */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    const wanted: { cell: number; node: number }[] = [];
    for (let fed = 0; fed < room && this.waiting > 0; fed++) {
      const item = this.#items[this.#cells.length]!;
      if (item.read !== null && wanted.length === rows) break;
      const parent = item.after < 0 ? this.#prefixLength - 1 : this.#cells[item.after]!;
      const cell = sequence.append(item.token, parent);
      this.#cells.push(cell);
      if (item.read !== null) wanted.push({ cell, node: item.read });
    }
    return wanted;
  }

  /** Cells that waiting tokens follow, those of the prefix aside. */
  get heads(): number[] {
    const fed = this.#cells.length;
    const followed = this.#items.slice(fed).filter(({ after }) => after >= 0 && after < fed);
    return [...new Set(followed.map(({ after }) => this.#cells[after]!))];
  }

  /** The cell where the line ends; null while its last token waits, or there is none. */
  get tip(): number | null {
    return this.#cells[this.#end] ?? null;
  }

  /** Notes that logits were delivered. */
  noteRead(): void {
    this.#unread--;
  }
}
