import { append } from '../../../lib/append.ts';
import type { Constraint } from '../../../lib/grammar/constraint.ts';
import type { BranchSpec, ChosenToken, ScoredChoice } from '../job-spec.ts';
import type { Random } from '../random.ts';
import type { BranchTokens, DraftStep } from './branch-tokens.ts';
import { continuationOf } from './prompt-lookup.ts';
import { chooseToken, logMass, logProbability } from './sampler.ts';
import type { BudgetShare } from './token-budget.ts';

/**
 * Minimum number of last tokens that must also occur earlier in the text (`continuationOf`) before a draft is made
 * without a grammar. Shorter matches are often chance.
 */
const LEAST_MATCH = 3;

export interface DecodingContext {
  /** Token ids of the job's prefix, which precedes the branch's suffix. */
  prefix: readonly number[];
  queue: BranchTokens;
  share: BudgetShare;
  random: Random;
  contextLength: number;
  vocabSize: number;
  onToken(token: ChosenToken): 'stop' | undefined;
  onForced?(tokens: readonly number[]): void;
}

type DecodingSpec = Pick<BranchSpec, 'sampling' | 'endTokens' | 'scored' | 'measured'>;

/**
 * Runs the decode phase of a branch: chooses one token after another, and appends the text that the constraint forces.
 */
export class Decoding {
  readonly #spec: DecodingSpec;
  readonly #context: DecodingContext;
  readonly #counts = new Map<number, number>();
  readonly #tokens: number[] = [];
  /** Index in `#tokens` of each chosen token. */
  readonly #chosenAt: number[] = [];
  /** Score of each chosen token; empty unless the branch is scored. */
  readonly #choices: ScoredChoice[] = [];
  #constraint: Constraint | null;
  /** Copy of the constraint before the first token, from which `cut` replays the part of the answer that it keeps. */
  readonly #untouched: Constraint | null;
  #mask: Uint32Array | null = null;
  #excluded: number | undefined;
  #reason: 'stop' | 'length' | null = null;
  #endedByToken = false;

  constructor(spec: DecodingSpec, constraint: Constraint | null, context: DecodingContext) {
    this.#spec = spec;
    this.#context = context;
    this.#constraint = constraint;
    this.#untouched = constraint?.fork() ?? null;
  }

  /** Ids of the tokens that were decoded, chosen and forced, without an end token. */
  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /** Log-probability and byte range of each chosen token; empty unless the branch is scored. */
  get choices(): readonly ScoredChoice[] {
    return this.#choices;
  }

  /** Probability that `BranchSpec.measured` asks for; undefined before the first choice. */
  get excluded(): number | undefined {
    return this.#excluded;
  }

  get constraint(): Constraint | null {
    return this.#constraint;
  }

  /** Reason why decoding ended; null while it runs. */
  get reason(): 'stop' | 'length' | null {
    return this.#reason;
  }

  end(reason: 'stop' | 'length'): void {
    this.#reason = reason;
  }

  /**
   * Queues tokens and the text that the constraint forces after them, and requests the logits for the next choice. If
   * the answer is complete or a limit is reached, ends decoding instead and queues nothing.
   */
  feed(tokens: readonly number[]): void {
    const { queue, share, contextLength, onForced } = this.#context;
    const forced = this.#begins ? [] : (this.#constraint?.takeForced() ?? []);
    append(this.#tokens, forced);
    if (forced.length > 0) onForced?.(forced);
    const fed = [...tokens, ...forced];
    if (this.#constraint?.complete) this.#reason = 'stop';
    else if (share.used >= share.limit || queue.length + fed.length > contextLength) this.#reason = 'length';
    else {
      queue.push(fed);
      queue.requestLogits();
    }
  }

  /**
   * Chooses the next token from the logits after the last token. An end token ends decoding. Any other token is
   * reported to `onToken` and queued by `feed`, unless `onToken` returns `'stop'`, which ends decoding after it.
   */
  deliver(logits: Float32Array): void {
    const { share, random, onToken } = this.#context;
    const mask = this.#allowed();
    if (this.#begins && mask) this.#excluded = this.#measure(logits, mask);
    const chosen = chooseToken(logits, this.#spec.sampling, mask, this.#counts, random);
    const { token } = chosen;
    if (this.#spec.endTokens.has(token)) {
      this.#reason = 'stop';
      this.#endedByToken = true;
      return;
    }
    share.used++;
    this.#chosenAt.push(this.#tokens.length);
    this.#tokens.push(token);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    const enough = onToken(chosen) === 'stop';
    this.#accept(token, logits, mask);
    if (enough) this.#reason = 'stop';
    else this.feed([token]);
  }

  /**
   * Drafts the next steps, of at most `most` tokens in all: tokens that followed the same text earlier, if the grammar
   * allows them, and tokens that the grammar expects or forces. Works on a copy of the grammar, so the answer does not
   * change.
   */
  draft(most: number): DraftStep[] {
    const { prefix, queue, share, contextLength, vocabSize } = this.#context;
    if (this.#reason) return [];
    const text = [...prefix, ...queue.line];
    const grammar = this.#constraint?.fork();
    const steps: DraftStep[] = [];
    // The logits that decide the next choice are requested anyway, so n steps yield n + 1 choices.
    const choices = Math.min(most, share.limit - share.used - 1);
    let left = Math.min(most, contextLength - text.length);
    let found = continuationOf(text);
    if (!grammar && (found?.matched ?? 0) < LEAST_MATCH) return [];
    try {
      while (steps.length < choices) {
        const expected = grammar?.expected();
        const token = expected ?? (found ? text[found.from] : undefined);
        // Ids beyond the vocabulary stand for features of media, which an answer cannot contain.
        if (token === undefined || token >= vocabSize || this.#spec.endTokens.has(token)) break;
        if (grammar && !grammar.accepts(token)) break;
        grammar?.accept(token);
        const step = [token, ...(grammar?.takeForced() ?? [])];
        left -= step.length;
        if (left < 0 || grammar?.complete) break;
        append(text, step);
        found =
          step.length === 1 && found && expected === undefined
            ? { ...found, from: found.from + 1 }
            : continuationOf(text);
        steps.push(step);
      }
    } catch {
      // The grammar has no tokens for what follows this guess. If the model chooses it too, that ends its job.
    }
    return steps;
  }

  /** Discards all but the first `kept` chosen tokens; the answer then ends with reason `length`. */
  cut(kept: number): void {
    this.#reason = 'length';
    this.#tokens.length = this.#chosenAt[kept] ?? this.#tokens.length;
    this.#constraint = this.#untouched;
    if (!this.#spec.measured) this.#constraint?.takeForced();
    this.#chosenAt.length = kept;
    this.#choices.length = Math.min(kept, this.#choices.length);
    for (const at of this.#chosenAt) {
      const token = this.#tokens[at];
      if (token !== undefined) this.#constraint?.accept(token);
      this.#constraint?.takeForced();
    }
  }

  /**
   * Changes the reason from `stop` to `length` if an end token ended decoding. Called if the final budget was used up
   * before that token, so the model had no further choice.
   */
  forgetEndToken(): void {
    if (this.#endedByToken) this.#reason = 'length';
  }

  /** Advances the grammar by a chosen token, and records the token's probability if the branch is scored. */
  #accept(token: number, logits: Float32Array, mask: Uint32Array | null): void {
    if (!this.#constraint) return;
    const start = this.#constraint.length;
    this.#constraint.accept(token);
    if (!this.#spec.scored || !mask) return;
    this.#choices.push({ logprob: logProbability(logits, token, mask), start, end: this.#constraint.length });
  }

  /** True until the first token is chosen, if what it could be instead is measured. */
  get #begins(): boolean {
    return this.#spec.measured !== undefined && this.#chosenAt.length === 0;
  }

  #measure(logits: Float32Array, mask: Uint32Array): number {
    const wider = new Uint32Array(mask.length);
    this.#spec.measured?.mask(wider);
    for (let i = 0; i < mask.length; i++) wider[i] = (wider[i] ?? 0) | (mask[i] ?? 0);
    return Math.max(0, -Math.expm1(logMass(logits, mask) - logMass(logits, wider)));
  }

  #allowed(): Uint32Array | null {
    if (!this.#constraint) return null;
    this.#mask ??= new Uint32Array(Math.ceil(this.#context.vocabSize / 32));
    this.#constraint.mask(this.#mask);
    return this.#mask;
  }
}
