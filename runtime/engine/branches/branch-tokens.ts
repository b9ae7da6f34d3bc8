import { append } from '../../../lib/append.ts';
import { at } from '../../../lib/at.ts';
import type { Sequence } from '../cache/sequence.ts';

interface Item {
  token: number;
  /** Index of the item that this token follows; -1 if it follows the prefix. */
  after: number;
  /**
   * Id under which the logits after this token are requested: the node of `OptionTrie`, the index of the item for a
   * draft, otherwise 0. Null if these logits are not needed.
   */
  node: number | null;
}

/**
 * Lists the tokens of one step of a draft: a guess of the next chosen token, and the tokens that the grammar forces
 * after it. The logits after the last token decide the next step.
 */
export type DraftStep = readonly number[];

/**
 * Queues the tokens of one branch for the model, in the order in which they were added. They form a tree after the
 * prefix, because several options can follow the same token. One path of this tree is the line: the tokens that the
 * branch has decided on.
 */
export class BranchTokens {
  readonly #prefixLength: number;
  readonly #items: Item[] = [];
  /** Cell of each item that has been fed, by item index. */
  readonly #cells: number[] = [];
  /** Index of the last item of the line; -1 while the line is empty. */
  #end = -1;
  #unread = 0;
  /**
   * Branch whose KV cells this one reuses for its first `count` tokens; null if there is none, and once the cells are
   * in `#cells`.
   */
  #source: { branch: BranchTokens; count: number } | null = null;
  #rollback: number | null = null;
  /** Steps of the draft that are neither accepted nor rejected yet, each with the item index of its first token. */
  #draft: { tokens: DraftStep; first: number }[] = [];
  /** Number of rejected draft tokens. Later tokens take their place in the branch. */
  #gone = 0;
  /** Cells of rejected draft tokens, until `takeRejected` returns them. */
  #rejected: number[] = [];

  constructor(prefixLength: number) {
    this.#prefixLength = prefixLength;
  }

  /**
   * Number of queued tokens that this branch must still feed to the model. Tokens whose cells come from another branch
   * (`shareBeginning`) do not count.
   */
  get waiting(): number {
    return this.#items.length - (this.#source?.count ?? this.#cells.length);
  }

  /** Number of requested rows of logits that have not been delivered yet. */
  get unread(): number {
    return this.#unread;
  }

  get empty(): boolean {
    return this.#items.length === 0;
  }

  /** Number of tokens from the beginning of the prefix to the end of the line. */
  get length(): number {
    let depth = this.#prefixLength;
    for (let index = this.#end; index >= 0; index = at(this.#items, index).after) depth++;
    return depth;
  }

  /** Token ids of the line, without the prefix. */
  get line(): number[] {
    const line: number[] = [];
    for (let index = this.#end; index >= 0; index = at(this.#items, index).after)
      line.push(at(this.#items, index).token);
    return line.reverse();
  }

  /**
   * Appends tokens to the line. If the next step of the draft has the same tokens, the model has already read them and
   * nothing is queued; otherwise the rest of the draft is rejected.
   */
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

  /**
   * Queues a token that is not part of the line, such as one of an option, after the item with index `after`. Requests
   * the logits after it under the id `node`. Returns the index of the new item.
   */
  pushNode(token: number, after: number, node: number): number {
    this.#unread++;
    return this.#items.push({ token, after, node }) - 1;
  }

  /**
   * Reuses the KV cells of another branch for the tokens with which both begin. Must be called before any token of this
   * branch is fed; the other branch must be fed first in every run.
   */
  shareBeginning(branch: BranchTokens): void {
    const count = this.#items.findIndex((item, index) => !isSame(item, branch.#items[index], index));
    if (count > 0) this.#source = { branch, count };
  }

  /** Records the shared cells as this branch's own. Returns false while the other branch has not fed all of them. */
  #takeShared(): boolean {
    if (!this.#source) return true;
    const { branch, count } = this.#source;
    if (branch.#cells.length < count) return false;
    append(this.#cells, branch.#cells.slice(0, count));
    this.#source = null;
    return true;
  }

  /**
   * Requests the logits after the last token of the line, under the id `node`. Does nothing if they are requested
   * already.
   */
  requestLogits(node = 0): void {
    const last = at(this.#items, this.#end);
    if (last.node !== null) return;
    this.#unread++;
    last.node = node;
  }

  /**
   * Queues drafted steps after the line. Requests the logits at the end of each step, which decide the next one, under
   * the index of the step's last item.
   */
  draft(steps: readonly DraftStep[]): void {
    let after = this.#end;
    for (const tokens of steps) {
      const first = this.#items.length;
      this.#draft.push({ tokens, first });
      for (const token of tokens) {
        this.#items.push({ token, after, node: null });
        after = this.#items.length - 1;
      }
      // The item's own index serves as the node: no other item of a decoding branch has it.
      at(this.#items, after).node = after;
      this.#unread++;
    }
  }

  /** Rejects the remaining steps of the draft and records their cells. All of their tokens must have been fed. */
  rejectDraft(): void {
    for (const { tokens, first } of this.#draft) {
      this.#gone += tokens.length;
      for (const index of tokens.keys()) this.#rejected.push(at(this.#cells, first + index));
    }
    this.#draft = [];
  }

  /** Returns the cells of the draft tokens rejected since the last call. */
  takeRejected(): number[] {
    const rejected = this.#rejected;
    this.#rejected = [];
    return rejected;
  }

  /** Tells whether logits that were requested under the id `node` belong to the last token of the line. */
  endsAt(node: number): boolean {
    return at(this.#items, this.#end).node === node;
  }

  /** Moves the end of the line to the token that was queued for `node`. Returns false if there is no such token. */
  continueAfter(node: number): boolean {
    const index = this.#items.findIndex((item) => item.node === node);
    if (index >= 0) this.#end = index;
    return index >= 0;
  }

  /**
   * Discards all but the first `count` tokens, which must have been fed. `takeRollback` then returns the first cell
   * that is no longer needed.
   */
  keep(count: number): void {
    this.#items.length = count;
    this.#cells.length = count;
    this.#end = count - 1;
    this.#rollback = count === 0 ? this.#prefixLength : at(this.#cells, count - 1) + 1;
  }

  /** Returns the first cell that the last call of `keep` freed; null if there is none, or if it was returned before. */
  takeRollback(): number | null {
    const cell = this.#rollback;
    this.#rollback = null;
    return cell;
  }

  /**
   * Appends up to `room` waiting tokens to the sequence; none while another branch has not fed the tokens that this one
   * shares with it (`shareBeginning`). Returns the new cells whose logits are needed, at most `rows` of them, each with
   * the id (`node`) under which its logits were requested.
   */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    const needed: { cell: number; node: number }[] = [];
    if (!this.#takeShared()) return needed;
    for (let fed = 0; fed < room && this.waiting > 0; fed++) {
      const { token, after, node } = at(this.#items, this.#cells.length);
      if (node !== null && needed.length === rows) break;
      const parent = after < 0 ? this.#prefixLength - 1 : at(this.#cells, after);
      const cell = sequence.append(token, parent, undefined, this.#cells.length + 1 - this.#gone);
      this.#cells.push(cell);
      if (node !== null) needed.push({ cell, node });
    }
    return needed;
  }

  /** Returns the cells after the prefix that a waiting token directly follows. */
  get heads(): number[] {
    this.#takeShared();
    const fed = this.#cells.length;
    const followed = this.#items.slice(fed).filter(({ after }) => after >= 0 && after < fed);
    return [...new Set(followed.map(({ after }) => at(this.#cells, after)))];
  }

  /** Cell of the first token; undefined before it is fed. */
  get first(): number | undefined {
    return this.#cells[0];
  }

  /** Number of tokens that the branch has or will have, without rejected ones. */
  get size(): number {
    return this.#items.length - this.#gone;
  }

  /** Cell of the last token of the line; null while that token is not fed, or if the line is empty. */
  get tip(): number | null {
    return this.#cells[this.#end] ?? null;
  }

  /** Counts one requested row of logits as delivered. */
  noteRead(): void {
    this.#unread--;
  }
}

/**
 * Tells whether two branches can share the cell of their item at `index`: both have the same token, directly after the
 * item before it and without requested logits.
 */
function isSame(one: Item, other: Item | undefined, index: number): boolean {
  const inLine = [one, other].every((item) => item?.after === index - 1 && item.node === null);
  return inLine && one.token === other?.token;
}
