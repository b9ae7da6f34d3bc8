import { at } from '../../../lib/at.ts';
import type { Constraint } from '../../../lib/grammar/constraint.ts';
import type { Sequence } from '../cache/sequence.ts';
import type { BranchResult, BranchSpec, ChosenToken, ReadRows } from '../job-spec.ts';
import { Random } from '../random.ts';
import { BranchTokens } from './branch-tokens.ts';
import { Decoding } from './decoding.ts';
import { OptionScoring, type ScoredPath, type Settled } from './option-scoring.ts';
import type { BudgetShare } from './token-budget.ts';

export interface BranchContext {
  /** Token ids of the job's prefix, which precedes the branch's suffix. */
  prefix: readonly number[];
  contextLength: number;
  vocabSize: number;
  share: BudgetShare;
  /** True if the branch has no others beside it, and a suffix of one token. */
  alone: boolean;
  onToken(token: ChosenToken): 'stop' | undefined;
  onForced?(tokens: readonly number[]): void;
}

/**
 * Answers one branch: `RowReading` if outputs are read; otherwise `OptionScoring` when it has a choice, then
 * `Decoding`.
 */
export class BranchRun {
  readonly #spec: BranchSpec;
  readonly #context: BranchContext;
  readonly #random: Random;
  readonly #queue: BranchTokens;
  readonly #scoring: OptionScoring | null;
  readonly #reading: RowReading | null;
  #settled: Settled | null = null;
  #decoding: Decoding | null = null;

  constructor(spec: BranchSpec, context: BranchContext) {
    this.#spec = spec;
    this.#context = context;
    this.#random = new Random(spec.sampling.seed);
    this.#queue = new BranchTokens(context.prefix.length);
    this.#reading = spec.read ? new RowReading(spec.read, spec.suffix, this.#queue) : null;
    const parts = { ...spec, alone: context.alone };
    this.#scoring = spec.choice ? new OptionScoring(spec.choice, parts, this.#queue, this.#random) : null;
  }

  get done(): boolean {
    return this.#reading ? this.#reading.rows !== null : (this.#decoding?.reason ?? null) !== null;
  }

  /** Number of queued tokens that this branch must still feed to the model (`BranchTokens.waiting`). */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /** True while the waiting tokens are read like a prompt, after the prefix (`OptionScoring.inLine`). */
  get inLine(): boolean {
    return !this.#decoding && this.#scoring?.inLine === true;
  }

  /** Number of requested rows of logits that have not been delivered yet. */
  get unread(): number {
    return this.#queue.unread;
  }

  /**
   * Queues the first tokens of the branch. Ends the branch at once if it has a single option and nothing after it. Also
   * ends it, with reason `length`, if it has no token budget, or if the prompt and the longest option exceed the
   * context length.
   */
  start(): void {
    const { suffix, choice, constraint } = this.#spec;
    const { prefix, contextLength, share } = this.#context;
    const scoring = this.#scoring;
    if (this.#reading) this.#reading.start();
    else if (!scoring) this.#decode(constraint).feed(suffix);
    else if (choice?.paths.length === 1) this.#settle(scoring, scoring.unscored());
    else if (prefix.length + suffix.length + scoring.longest > contextLength) this.#decode(null).end('length');
    else if (share.limit === 0) this.#keep(scoring.cut(scoring.unscored(), 0));
    else scoring.start();
  }

  /**
   * Reuses another branch's KV cells for the tokens that both begin with (conditions: `BranchTokens.shareBeginning`).
   */
  shareBeginning(other: BranchRun): void {
    this.#queue.shareBeginning(other.#queue);
  }

  /**
   * Appends up to `room` waiting tokens to the sequence. Returns the new cells whose logits are needed, at most `rows`
   * of them, each with the `node` to pass to `deliver`.
   */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    return this.#queue.feed(sequence, room, rows);
  }

  /**
   * Appends up to `most` drafted tokens, guesses of what comes next, to the sequence. Returns the new cells whose
   * logits are needed, each with the `node` to pass to `deliver`. Must be called when no other token of the branch
   * waits. Drafts never change the answer.
   */
  draft(sequence: Sequence, most: number): { cell: number; node: number }[] {
    const steps = this.#decoding?.draft(most) ?? [];
    this.#queue.draft(steps);
    return this.#queue.feed(sequence, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Rejects what is left of the draft. Returns the cells of all draft tokens rejected since the last call. */
  takeRejected(): number[] {
    this.#queue.rejectDraft();
    return this.#queue.takeRejected();
  }

  /** Cells after the prefix that a waiting token directly follows. */
  get heads(): number[] {
    return this.#queue.heads;
  }

  /** First cell of the branch, and the number of cells that it has or will have. */
  get cells(): { first: number | undefined; size: number } {
    return this.#queue;
  }

  /**
   * Cells that the next tokens of the branch follow: the cells that waiting tokens follow and, while decoding, the cell
   * of the last token that the branch has decided on.
   */
  get growing(): number[] {
    const { heads, tip } = this.#queue;
    return this.#decoding && tip !== null ? [...heads, tip] : heads;
  }

  /**
   * Returns the length to which the sequence can be truncated because a part of the option tree has been scored; null
   * if there is nothing to free, or if it was returned before.
   */
  takeRollback(): number | null {
    return this.#queue.takeRollback();
  }

  /**
   * Scores options, or chooses the next token, from the logits of a cell that `feed` or `draft` returned with this
   * `node`.
   */
  deliver(node: number, logits: Float32Array): void {
    this.#queue.noteRead();
    if (this.#reading) {
      this.#reading.deliver(node, logits);
      return;
    }
    if (this.#decoding) {
      // Logits after a rejected draft token are ignored.
      if (!this.done && this.#queue.endsAt(node)) this.#decoding.deliver(logits);
      return;
    }
    const scored = this.#scoring?.deliver(node, logits);
    if (this.#scoring && scored) this.#settle(this.#scoring, scored);
  }

  /**
   * Returns the branch's result, cut to its token budget. Must be called in the order of the branches, because a branch
   * may use the tokens that earlier ones leave.
   */
  result(): BranchResult {
    const rows = this.#reading?.rows;
    if (rows) return { rows, tokens: [], constraint: null, chosen: 0, reason: 'stop' };
    const { share } = this.#context;
    const { limit } = share;
    if (share.used > limit) this.#cut(limit);
    else if (share.used === limit) this.#decoding?.forgetEndToken();
    return {
      ...(this.#settled?.option ? { option: this.#settled.option } : {}),
      tokens: this.#decoding?.tokens ?? [],
      constraint: this.#decoding?.constraint ?? null,
      ...(this.#spec.scored ? { choices: this.#decoding?.choices ?? [] } : {}),
      ...(this.#decoding?.excluded === undefined ? {} : { excluded: this.#decoding.excluded }),
      chosen: share.used,
      reason: this.#decoding?.reason ?? 'length',
    };
  }

  #decode(constraint: Constraint | null): Decoding {
    const context = { ...this.#context, queue: this.#queue, random: this.#random };
    this.#decoding = new Decoding(this.#spec, constraint, context);
    return this.#decoding;
  }

  /** Ends the option phase with the chosen path, or with as much of it as the budget allows. */
  #settle(scoring: OptionScoring, scored: ScoredPath): void {
    const { share } = this.#context;
    const settled = scoring.settle(scored);
    if (settled.chosen > share.limit) {
      this.#keep(scoring.cut(scored, share.limit));
      return;
    }
    this.#settled = settled;
    share.used = settled.chosen;
    const decoding = this.#decode(settled.next);
    if (!settled.next || settled.next.complete) decoding.end('stop');
    else decoding.feed(scoring.tokensToFeed(settled.path));
  }

  /** Ends the branch, with reason `length`, after as much of the option phase as the budget allowed. */
  #keep(settled: Settled): void {
    this.#settled = settled;
    this.#context.share.used = settled.chosen;
    this.#decode(settled.next).end('length');
  }

  /** Discards all but the first `limit` chosen tokens of the branch; its result then has reason `length`. */
  #cut(limit: number): void {
    const settled = this.#settled;
    if (this.#scoring && settled && limit < settled.chosen) {
      // If an earlier cut already removed the option, only the count of chosen tokens shrinks.
      this.#keep(settled.option ? this.#scoring.cut(settled, limit) : { ...settled, chosen: limit });
      return;
    }
    this.#decoding?.cut(limit - (settled?.chosen ?? 0));
    this.#context.share.used = limit;
  }
}

/**
 * Reads the outputs of the model at some positions of a branch, such as those after an option and at the end, which a
 * decision model compares. Chooses no token.
 */
class RowReading {
  readonly #reads: ReadRows;
  readonly #suffix: readonly number[];
  readonly #queue: BranchTokens;
  readonly #rows: Float32Array[] = [];
  #read = 0;

  constructor(reads: ReadRows, suffix: readonly number[], queue: BranchTokens) {
    this.#reads = reads;
    this.#suffix = suffix;
    this.#queue = queue;
  }

  /** Queues the branch's suffix, and requests the outputs after each position. */
  start(): void {
    let from = 0;
    for (const [index, position] of this.#reads.positions.entries()) {
      this.#queue.push(this.#suffix.slice(from, position + 1));
      this.#queue.requestLogits(index);
      from = position + 1;
    }
    this.#queue.push(this.#suffix.slice(from));
  }

  /** Keeps the outputs at the position with an index. Throws if they are not numbers. */
  deliver(index: number, outputs: Float32Array): void {
    const { outputs: wanted } = this.#reads;
    const row = wanted ? Float32Array.from(wanted, (output) => at(outputs, output)) : outputs.slice();
    if (!row.every(Number.isFinite)) throw new Error('the outputs are not numbers');
    this.#rows[index] = row;
    this.#read++;
  }

  /** The outputs at each position, once all of them are delivered; otherwise null. */
  get rows(): readonly Float32Array[] | null {
    return this.#read === this.#reads.positions.length ? this.#rows : null;
  }
}
