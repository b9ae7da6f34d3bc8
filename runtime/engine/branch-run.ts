import type { Constraint } from '../../lib/grammar/constraint.ts';
import { BranchTokens } from './branch-tokens.ts';
import { Decoding } from './decoding.ts';
import type { BranchResult, BranchSpec, ChosenToken } from './job.ts';
import { OptionScoring, type ScoredPath, type Settled } from './option-scoring.ts';
import { Random } from './random.ts';
import type { Sequence } from './sequence.ts';
import type { BudgetShare } from './token-budget.ts';

export interface BranchContext {
  /** Token ids of the job's prefix, which precedes the branch's suffix. */
  prefix: readonly number[];
  contextLength: number;
  vocabSize: number;
  share: BudgetShare;
  onToken(token: ChosenToken): 'stop' | undefined;
}

/** Answers one branch in two phases: `OptionScoring` when it has a choice, then `Decoding`. */
export class BranchRun {
  readonly #spec: BranchSpec;
  readonly #context: BranchContext;
  readonly #random: Random;
  readonly #queue: BranchTokens;
  readonly #scoring: OptionScoring | null;
  #settled: Settled | null = null;
  #decoding: Decoding | null = null;

  constructor(spec: BranchSpec, context: BranchContext) {
    this.#spec = spec;
    this.#context = context;
    this.#random = new Random(spec.sampling.seed);
    this.#queue = new BranchTokens(context.prefix.length);
    this.#scoring = spec.choice ? new OptionScoring(spec.choice, spec, this.#queue, this.#random) : null;
  }

  get done(): boolean {
    return (this.#decoding?.reason ?? null) !== null;
  }

  /** Number of queued tokens that have not been fed to the model yet. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /**
   * Queues the branch's first tokens. The branch may be done at once: with a single option, or when no token may be
   * chosen.
   */
  start(): void {
    const { suffix, choice, constraint } = this.#spec;
    const { prefix, contextLength, share } = this.#context;
    const scoring = this.#scoring;
    if (!scoring) this.#decode(constraint).feed(suffix);
    else if (choice?.paths.length === 1) this.#settle(scoring, scoring.unscored());
    else if (prefix.length + suffix.length + scoring.longest > contextLength) this.#decode(null).end('length');
    else if (share.limit === 0) this.#keep(scoring.cut(scoring.unscored(), 0));
    else scoring.start();
  }

  /** Reuses the KV cells of another branch for the tokens with which both begin (`BranchTokens.shareBeginning`). */
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
   * Appends up to `most` drafted tokens, which are likely to come next, to the sequence. All of the branch's other
   * tokens must have been fed before. Returns the new cells whose logits are needed. Drafts never change the answer.
   */
  draft(sequence: Sequence, most: number): { cell: number; node: number }[] {
    const steps = this.#decoding?.draft(most) ?? [];
    this.#queue.draft(steps);
    return this.#queue.feed(sequence, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Returns the cells of drafted tokens that the model did not choose, each only once. */
  takeRejected(): number[] {
    this.#queue.rejectDraft();
    return this.#queue.takeRejected();
  }

  /** Cells that waiting tokens follow directly, without those of the prefix. */
  get heads(): number[] {
    return this.#queue.heads;
  }

  /**
   * Cells that the branch's later tokens continue from, unless it ends first: those before waiting tokens, and the end
   * of the answer so far.
   */
  get growing(): number[] {
    const { heads, tip } = this.#queue;
    return this.#decoding && tip !== null ? [...heads, tip] : heads;
  }

  /**
   * Returns the first KV cell that can be freed because a part of the option tree has been scored; null if there is
   * none.
   */
  takeRollback(): number | null {
    return this.#queue.takeRollback();
  }

  /** Passes on the logits of a cell that `feed` or `draft` returned with this `node`. */
  deliver(node: number, logits: Float32Array): void {
    this.#queue.noteRead();
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
   * may use what those before it leave.
   */
  result(): BranchResult {
    const { share } = this.#context;
    const { limit } = share;
    if (share.used > limit) this.#cut(limit);
    else if (share.used === limit) this.#decoding?.forgetEndToken();
    return {
      ...(this.#settled?.option ? { option: this.#settled.option } : {}),
      tokens: this.#decoding?.tokens ?? [],
      constraint: this.#decoding?.constraint ?? null,
      ...(this.#spec.scored ? { choices: this.#decoding?.choices ?? [] } : {}),
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
      // Without an option there is nothing to choose again: only the count of chosen tokens shrinks.
      this.#keep(settled.option ? this.#scoring.cut(settled, limit) : { ...settled, chosen: limit });
      return;
    }
    this.#decoding?.cut(limit - (settled?.chosen ?? 0));
    this.#context.share.used = limit;
  }
}
