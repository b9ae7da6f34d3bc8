import type { Constraint } from '../../lib/grammar/constraint.ts';
import { BranchTokens } from './branch-tokens.ts';
import { Decoding } from './decoding.ts';
import type { BranchResult, BranchSpec, ChosenToken } from './job.ts';
import { OptionScoring, type ScoredPath, type Settled } from './option-scoring.ts';
import { Random } from './random.ts';
import type { Sequence } from './sequence.ts';
import type { BudgetShare } from './token-budget.ts';

export interface BranchContext {
  /** Tokens before the suffix. */
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

  /** Tokens that wait to be fed. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /** Queues the first tokens. The branch may be done at once, when the model has no choice. */
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

  /** Uses the cells of another branch for the tokens that both begin with (`BranchTokens.shareBeginning`). */
  shareBeginning(other: BranchRun): void {
    this.#queue.shareBeginning(other.#queue);
  }

  /**
   * Appends up to `room` waiting tokens to the sequence; returns the new cells whose logits are needed, at most `rows`.
   */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    return this.#queue.feed(sequence, room, rows);
  }

  /**
   * Appends up to `most` tokens that probably follow to the sequence, which must hold all others; returns the new cells
   * whose logits are needed. What is answered does not depend on them.
   */
  draft(sequence: Sequence, most: number): { cell: number; node: number }[] {
    const steps = this.#decoding?.draft(most) ?? [];
    this.#queue.draft(steps);
    return this.#queue.feed(sequence, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Returns, once, the cells of drafted tokens that did not follow. */
  takeRejected(): number[] {
    this.#queue.rejectDraft();
    return this.#queue.takeRejected();
  }

  /** Cells that tokens which wait follow, those of the prefix aside. */
  get heads(): number[] {
    return this.#queue.heads;
  }

  /** Cells that later tokens will surely follow, or the branch ends: waiting tokens, and the answer so far. */
  get growing(): number[] {
    const { heads, tip } = this.#queue;
    return this.#decoding && tip !== null ? [...heads, tip] : heads;
  }

  /** Returns the first KV cell of a part of the options that is scored and can be freed; null if there is none. */
  takeRollback(): number | null {
    return this.#queue.takeRollback();
  }

  /** Takes the logits after a cell that `feed` reported. */
  deliver(node: number, logits: Float32Array): void {
    this.#queue.noteRead();
    if (this.#decoding) {
      // Otherwise they are behind a drafted token that did not follow.
      if (!this.done && this.#queue.endsAt(node)) this.#decoding.deliver(logits);
      return;
    }
    const scored = this.#scoring?.deliver(node, logits);
    if (this.#scoring && scored) this.#settle(this.#scoring, scored);
  }

  /**
   * Returns the result, cut to the budget. Earlier branches give their results first: this one gets what they do not
   * use.
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

  /** Ends the first phase with a path, or with the part of it that the budget allows. */
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

  /** Ends the branch with the part of its first phase that the budget allowed. */
  #keep(settled: Settled): void {
    this.#settled = settled;
    this.#context.share.used = settled.chosen;
    this.#decode(settled.next).end('length');
  }

  /** Takes back what was chosen beyond `limit`, as if it had never been asked for. */
  #cut(limit: number): void {
    const settled = this.#settled;
    if (this.#scoring && settled && limit < settled.chosen) {
      // Without an option, only the tokens have to be removed.
      this.#keep(settled.option ? this.#scoring.cut(settled, limit) : { ...settled, chosen: limit });
      return;
    }
    this.#decoding?.cut(limit - (settled?.chosen ?? 0));
    this.#context.share.used = limit;
  }
}
