import type { Constraint } from '../../lib/grammar/constraint.ts';
import { BranchTokens } from './branch-tokens.ts';
import type { BranchResult, BranchSpec, ChosenToken } from './job.ts';
import { normalise, OptionTrie } from './option-trie.ts';
import { Random } from './random.ts';
import { chooseToken } from './sampler.ts';
import type { Sequence } from './sequence.ts';

export interface BranchSurroundings {
  prefixLength: number;
  contextLength: number;
  vocabSize: number;
  /** Tokens this branch may choose in all, as things stand: the budget less what the branches before it have used. */
  allowance(): number;
  onToken?(token: ChosenToken): 'stop' | undefined;
}

/** One branch while it is being answered: what is still to be fed, what was said, what may be said next. */
export class BranchRun {
  readonly #spec: BranchSpec;
  readonly #around: BranchSurroundings;
  readonly #random: Random;
  readonly #queue: BranchTokens;
  readonly #counts = new Map<number, number>();
  readonly #tokens: number[] = [];
  /** Index in `#tokens` of each chosen token. */
  readonly #chosenAt: number[] = [];
  readonly #trie: OptionTrie | null;
  #parts: number[][] = [];
  #rollback: number | null = null;
  #option: BranchResult['option'];
  #optionChoices = 0;
  #constraint: Constraint | null;
  /** The constraint before anything was said, for answers that the budget cuts afterwards. */
  #untouched: Constraint | null;
  #mask: Uint32Array | null = null;
  #reason: 'stop' | 'length' | null = null;
  #endedByToken = false;

  constructor(spec: BranchSpec, around: BranchSurroundings) {
    this.#spec = spec;
    this.#around = around;
    this.#random = new Random(spec.sampling.seed);
    this.#queue = new BranchTokens(around.prefixLength);
    this.#trie = spec.choice ? new OptionTrie(spec.choice.paths, spec.choice.options) : null;
    this.#constraint = spec.choice ? null : spec.constraint;
    this.#untouched = this.#constraint?.fork() ?? null;
  }

  get done(): boolean {
    return this.#reason !== null;
  }

  /** Tokens chosen so far. */
  get chosen(): number {
    return this.#optionChoices + this.#chosenAt.length;
  }

  /** Tokens that wait to be fed. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /** Queues the suffix and what can be scored with it. May be done at once, when nothing is left to the model. */
  start(): void {
    const { suffix } = this.#spec;
    if (!this.#trie) {
      this.#queueSpoken(suffix);
      return;
    }
    if (this.#spec.choice!.paths.length === 1) {
      this.#settle(0, [0]);
      return;
    }
    const longest = Math.max(...this.#spec.choice!.paths.map((path) => path.length));
    const end = this.#around.prefixLength + suffix.length + longest;
    if (end > this.#around.contextLength) {
      this.#reason = 'length';
      return;
    }
    if (this.#limit() <= 0) {
      this.#keep(
        0,
        this.#spec.choice!.paths.map(() => 0),
        0,
      );
      return;
    }
    this.#push(suffix);
    this.#queue.ask();
    this.#parts = this.#trie.parts();
    this.#queuePart();
  }

  /** Appends up to `room` waiting tokens to the sequence; returns the new cells whose logits are wanted, at most `rows`. */
  feed(sequence: Sequence, room: number, rows: number): { cell: number; node: number }[] {
    return this.#queue.feed(sequence, room, rows);
  }

  /** The cell from which on a finished part of many options is to be forgotten; null: nothing. */
  takeRollback(): number | null {
    const cell = this.#rollback;
    this.#rollback = null;
    return cell;
  }

  /** Takes the logits behind a cell that `feed` reported. */
  deliver(node: number, logits: Float32Array): void {
    this.#queue.noteRead();
    if (this.#trie && !this.#option) this.#scoreOption(this.#trie, node, logits);
    else this.#say(logits);
  }

  /** The result, cut to `allowance` chosen tokens where it is longer. */
  result(allowance: number): BranchResult {
    if (this.chosen > allowance) this.#cut(allowance);
    // With nothing left, it would not have been asked whether it ends here.
    else if (this.#endedByToken && this.chosen >= allowance) this.#reason = 'length';
    return {
      ...(this.#option ? { option: this.#option } : {}),
      tokens: this.#tokens,
      constraint: this.#constraint,
      chosen: this.chosen,
      reason: this.#reason ?? 'length',
    };
  }

  #limit(): number {
    return Math.min(this.#spec.maxTokens, this.#around.allowance());
  }

  #scoreOption(trie: OptionTrie, node: number, logits: Float32Array): void {
    trie.score(node, logits);
    if (this.#queue.unread > 0) return;
    if (this.#parts.length > 0) {
      this.#forgetOptions();
      this.#queuePart();
      return;
    }
    const logprobs = trie.logprobs();
    const { temperature } = this.#spec.sampling;
    const option = temperature === 0 ? trie.best(logprobs) : this.#drawOption(logprobs, temperature);
    this.#settle(option, logprobs);
  }

  /** Queues the next part of the options' tree behind the suffix. */
  #queuePart(): void {
    const itemOf = new Map([[0, this.#spec.suffix.length - 1]]);
    for (const node of this.#parts.shift() ?? []) {
      const after = itemOf.get(this.#trie!.parent(node))!;
      itemOf.set(node, this.#queue.pushNode(this.#trie!.token(node), after, node));
    }
  }

  #forgetOptions(): void {
    this.#rollback = this.#queue.keep(this.#spec.suffix.length);
  }

  #settle(option: number, logprobs: number[]): void {
    const trie = this.#trie!;
    const choices = trie.choices(option);
    const limit = this.#limit();
    if (choices > limit) {
      this.#keep(option, logprobs, Math.max(0, limit));
      return;
    }
    this.#option = { index: option, logprobs, probabilities: normalise(logprobs) };
    this.#optionChoices = choices;
    const next = this.#spec.choice!.after?.(option) ?? null;
    this.#constraint = next;
    this.#untouched = next?.fork() ?? null;
    if (!next || next.complete) {
      this.#reason = 'stop';
      return;
    }
    const path = trie.path(option);
    if (this.#queue.continueBehind(trie.nodeBeforeEnd(option))) {
      this.#queueSpoken(path.slice(-1));
      return;
    }
    // The option stood in an earlier part, or was never fed: feed its whole path.
    if (this.#queue.empty) this.#push(this.#spec.suffix);
    else this.#forgetOptions();
    if (!this.done) this.#queueSpoken(path);
  }

  /** Keeps of a path what fewer tokens than it needs have settled: its option, or nothing. */
  #keep(path: number, logprobs: readonly number[], allowance: number): void {
    const trie = this.#trie!;
    const settled = trie.settling(path) <= allowance;
    const index = trie.plainest(path);
    this.#option = settled ? { index, logprobs, probabilities: normalise(logprobs) } : undefined;
    this.#constraint = settled ? (this.#spec.choice!.after?.(index) ?? null) : null;
    // What was left went into the attempt: a branch after this one gets nothing either.
    this.#optionChoices = allowance;
    this.#reason = 'length';
  }

  #drawOption(logprobs: number[], temperature: number): number {
    const probabilities = normalise(logprobs.map((logprob) => logprob / temperature));
    let left = this.#random.uniform();
    for (const [option, probability] of probabilities.entries()) {
      left -= probability;
      if (left < 0) return option;
    }
    return this.#trie!.best(logprobs);
  }

  /** Queues tokens that are said, with the forced text behind them, and asks for what comes next. */
  #queueSpoken(tokens: readonly number[]): void {
    if (this.#writeForced(tokens)) this.#queue.ask();
  }

  /** False when that was the end: nothing more may be said, or there is no room for it. */
  #writeForced(tokens: readonly number[]): boolean {
    const forced = this.#constraint?.takeForced() ?? [];
    this.#tokens.push(...forced);
    if (this.#constraint?.complete) this.#reason = 'stop';
    else if (this.chosen >= this.#limit()) this.#reason = 'length';
    else this.#push([...tokens, ...forced]);
    return this.#reason === null;
  }

  #push(tokens: readonly number[]): void {
    if (this.#queue.length + tokens.length > this.#around.contextLength) this.#reason = 'length';
    else this.#queue.push(tokens);
  }

  #say(logits: Float32Array): void {
    const mask = this.#allowed();
    const chosen = chooseToken(logits, this.#spec.sampling, mask, this.#counts, this.#random);
    const { token } = chosen;
    if (this.#spec.endTokens.has(token)) {
      this.#reason = 'stop';
      this.#endedByToken = true;
      return;
    }
    this.#chosenAt.push(this.#tokens.length);
    this.#tokens.push(token);
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    const enough = this.#around.onToken?.(chosen) === 'stop';
    this.#constraint?.accept(token);
    if (enough) {
      this.#reason = 'stop';
      return;
    }
    this.#queueSpoken([token]);
  }

  #allowed(): Uint32Array | null {
    if (!this.#constraint) return null;
    this.#mask ??= new Uint32Array(Math.ceil(this.#around.vocabSize / 32));
    this.#constraint.mask(this.#mask);
    return this.#mask;
  }

  /** Takes back what was chosen beyond `allowance`, as if it had never been asked for. */
  #cut(allowance: number): void {
    this.#reason = 'length';
    if (allowance < this.#optionChoices) {
      this.#tokens.length = 0;
      this.#chosenAt.length = 0;
      if (this.#option) this.#keep(this.#option.index, this.#option.logprobs, allowance);
      else this.#optionChoices = allowance;
      return;
    }
    const kept = allowance - this.#optionChoices;
    this.#tokens.length = this.#chosenAt[kept] ?? this.#tokens.length;
    this.#chosenAt.length = kept;
    this.#constraint = this.#untouched;
    this.#constraint?.takeForced();
    for (const at of this.#chosenAt) {
      this.#constraint?.accept(this.#tokens[at]!);
      this.#constraint?.takeForced();
    }
  }
}
