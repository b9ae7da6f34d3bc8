import { at } from '../../lib/at.ts';
import type { Sequence } from './sequence.ts';

interface Item {
  token: number;
  /** Index of the item it follows; -1: the prefix. */
  after: number;
  /** Node of the options' tree whose logits are needed after this token (0 without options); null: none. */
  node: number | null;
}

/** Holds tokens that probably follow. The logits after the last one decide what follows them. */
export type DraftStep = readonly number[];

/**
 * Queues the tokens of one branch for the model, in the order in which they were added. They form a tree after the
 * prefix, because several options can continue the same token.
 */
export class BranchTokens {
  readonly #prefixLength: number;
  readonly #items: Item[] = [];
  /** Cell of each item that was fed. */
  readonly #cells: number[] = [];
  /** The item that the next token in line follows. */
  #end = -1;
  #unread = 0;
  /** The branch whose cells hold the first tokens, until these cells are known. */
  #lender: { branch: BranchTokens; count: number } | null = null;
  #rollback: number | null = null;
  /** Steps of the draft that were not reached: their tokens, and the index of the first one's item. */
  #draft: { tokens: DraftStep; first: number }[] = [];
  /** Cells of drafted tokens that did not follow. */
  #rejected: number[] = [];

  constructor(prefixLength: number) {
    this.#prefixLength = prefixLength;
  }

  /** Tokens that wait to be fed. */
  get waiting(): number {
    return this.#items.length - (this.#lender?.count ?? this.#cells.length);
  }

  /** Needed logits that have not been delivered. */
  get unread(): number {
    return this.#unread;
  }

  get empty(): boolean {
    return this.#items.length === 0;
  }

  /** Tokens from the beginning of the prefix to the end of the line. */
  get length(): number {
    let depth = this.#prefixLength;
    for (let index = this.#end; index >= 0; index = at(this.#items, index).after) depth++;
    return depth;
  }

  /** Tokens of the line, without the prefix. */
  get line(): number[] {
    const line: number[] = [];
    for (let index = this.#end; index >= 0; index = at(this.#items, index).after)
      line.push(at(this.#items, index).token);
    return line.reverse();
  }

  /** Appends tokens to the branch. If the draft's next step has the same tokens, the model has read them already. */
  push(tokens: readonly number[]): void {
    const step = this.#draft.shift();
    if (step && step.tokens.length === tokens.length && step.tokens.every((token, i) => token === tokens[i])) {
      this.#end = step.first + tokens.length - 1;
      return;
    }
    if (step) this.#draft.unshift(step);
    this.rejectDraft();
    for (const token of tokens) {
      this.#items.push({ token, after: this.#end, node: null });
      this.#end = this.#items.length - 1;
    }
  }

  /** Adds a token outside the line, after the token `after`, whose logits are needed for `node`. Returns its index. */
  pushNode(token: number, after: number, node: number): number {
    this.#unread++;
    return this.#items.push({ token, after, node }) - 1;
  }

  /**
   * Uses the cells of another branch for the tokens that both begin with. Nothing of this branch may be fed yet, and
   * the other one must be fed first in every run.
   */
  shareBeginning(branch: BranchTokens): void {
    const count = this.#items.findIndex((item, index) => !isSame(item, branch.#items[index], index));
    if (count > 0) this.#lender = { branch, count };
  }

  /** Takes over the shared cells once all of them are fed; returns false before. */
  #takeShared(): boolean {
    if (!this.#lender) return true;
    const { branch, count } = this.#lender;
    if (branch.#cells.length < count) return false;
    this.#cells.push(...branch.#cells.slice(0, count));
    this.#lender = null;
    return true;
  }

  /** Requests the logits after the last token. */
  ask(): void {
    const last = at(this.#items, this.#end);
    if (last.node !== null) return;
    this.#unread++;
    last.node = 0;
  }

  /** Adds steps that probably follow the line, each with the logits that decide the next one. */
  draft(steps: readonly DraftStep[]): void {
    let after = this.#end;
    for (const tokens of steps) {
      const first = this.#items.length;
      this.#draft.push({ tokens, first });
      for (const token of tokens) {
        this.#items.push({ token, after, node: null });
        after = this.#items.length - 1;
      }
      // Its own index: no other item of a branch that decodes has this node.
      at(this.#items, after).node = after;
      this.#unread++;
    }
  }

  /** Drops the rest of the draft, all of which was fed. */
  rejectDraft(): void {
    for (const { tokens, first } of this.#draft) {
      for (const index of tokens.keys()) this.#rejected.push(at(this.#cells, first + index));
    }
    this.#draft = [];
  }

  /** Returns, once, the cells of drafted tokens that did not follow. */
  takeRejected(): number[] {
    const rejected = this.#rejected;
    this.#rejected = [];
    return rejected;
  }

  /** Tells whether logits that were asked for as `node` are those behind the end of the line. */
  endsAt(node: number): boolean {
    return at(this.#items, this.#end).node === node;
  }

  /** Continues the line after the token that was added for `node`; returns false when there is none. */
  continueBehind(node: number): boolean {
    const index = this.#items.findIndex((item) => item.node === node);
    if (index >= 0) this.#end = index;
    return index >= 0;
  }

  /**
   * Forgets all but the first `count` tokens, which were fed; `takeRollback` then tells which cells are no longer
   * needed.
   */
  keep(count: number): void {
    this.#items.length = count;
    this.#cells.length = count;
    this.#end = count - 1;
    this.#rollback = at(this.#cells, count - 1) + 1;
  }

  /** Returns, once, the first cell that `keep` has freed; null: none. */
  takeRollback(): number | null {
    const cell = this.#rollback;
    this.#rollback = null;
    return cell;
  }

  /**
   * Appends up to `room` waiting tokens to the sequence; returns the new cells whose logits are needed, at most `rows`.
   */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    const needed: { cell: number; node: number }[] = [];
    if (!this.#takeShared()) return needed;
    for (let fed = 0; fed < room && this.waiting > 0; fed++) {
      const { token, after, node } = at(this.#items, this.#cells.length);
      if (node !== null && needed.length === rows) break;
      const parent = after < 0 ? this.#prefixLength - 1 : at(this.#cells, after);
      const cell = sequence.append(token, parent);
      this.#cells.push(cell);
      if (node !== null) needed.push({ cell, node });
    }
    return needed;
  }

  /** Returns the cells that waiting tokens follow, except those of the prefix. */
  get heads(): number[] {
    this.#takeShared();
    const fed = this.#cells.length;
    const followed = this.#items.slice(fed).filter(({ after }) => after >= 0 && after < fed);
    return [...new Set(followed.map(({ after }) => at(this.#cells, after)))];
  }

  /** Cell at the end of the line; null while its last token waits, or when there is none. */
  get tip(): number | null {
    return this.#cells[this.#end] ?? null;
  }

  /** Notes that logits were delivered. */
  noteRead(): void {
    this.#unread--;
  }
}

/** Tells whether two branches have the same token at `index`, in line and without a need of its logits. */
function isSame(one: Item, other: Item | undefined, index: number): boolean {
  const inLine = [one, other].every((item) => item?.after === index - 1 && item.node === null);
  return inLine && one.token === other?.token;
}
