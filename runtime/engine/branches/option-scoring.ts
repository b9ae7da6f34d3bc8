import type { Constraint } from '../../../lib/grammar/constraint.ts';
import type { BranchResult, ChoiceSpec, Sampling } from '../job-spec.ts';
import type { Random } from '../random.ts';
import type { BranchTokens } from './branch-tokens.ts';
import { normalise, OptionTrie } from './option-trie.ts';

/** Holds the index of the chosen path, and the total log-probability of every path. */
export interface ScoredPath {
  path: number;
  logprobs: readonly number[];
}

/** Holds the result of the option phase of a branch. */
export interface Settled extends ScoredPath {
  /**
   * Index of the chosen path, with the log-probabilities and probabilities of all paths; absent if the budget ended
   * before the option was known.
   */
  option?: BranchResult['option'];
  /**
   * Number of tokens that count against the budget: those of the path that the model chose, or after `cut` the whole
   * allowance.
   */
  chosen: number;
  /** Constraint on the text after the option; null if nothing follows. */
  next: Constraint | null;
}

/** Runs the option phase of a branch: scores the token paths of all options as a tree and chooses one. */
export class OptionScoring {
  readonly #choice: ChoiceSpec;
  readonly #suffix: readonly number[];
  readonly #sampling: Sampling;
  readonly #queue: BranchTokens;
  readonly #random: Random;
  readonly #trie: OptionTrie;
  readonly #alone: boolean;
  /** Parts of the tree whose tokens have not been queued yet. */
  #parts: number[][] = [];
  /**
   * True while the queued part of the tree is one long path after a suffix of one token, in a branch that is alone: the
   * model then reads it like a prompt.
   */
  inLine = false;

  constructor(
    choice: ChoiceSpec,
    { suffix, sampling, alone }: { suffix: readonly number[]; sampling: Sampling; alone: boolean },
    queue: BranchTokens,
    random: Random,
  ) {
    this.#choice = choice;
    this.#suffix = suffix;
    this.#sampling = sampling;
    this.#alone = alone;
    this.#queue = queue;
    this.#random = random;
    this.#trie = new OptionTrie(choice.paths, choice.options);
  }

  /** Number of tokens of the longest path. */
  get longest(): number {
    return Math.max(...this.#choice.paths.map((path) => path.length));
  }

  /** Queues the branch's suffix and the first part of the tree. */
  start(): void {
    this.#queue.push(this.#suffix);
    this.#queue.requestLogits();
    const parts = this.#trie.parts();
    const inLine = (part: readonly number[]) => this.#trie.isLongLine(part);
    this.#parts = [...parts.filter(inLine), ...parts.filter((part) => !inLine(part))];
    this.#queuePart();
  }

  /**
   * Scores the tokens that can follow a node, from the logits after it, and queues the next part of the tree once a
   * part is scored. Returns the index of the chosen path and all log-probabilities once the whole tree is scored, null
   * before that.
   */
  deliver(node: number, logits: Float32Array): ScoredPath | null {
    this.#trie.score(node, logits);
    if (this.#queue.unread > 0) return null;
    if (this.#parts.length > 0) {
      this.#restart();
      this.#queuePart();
      return null;
    }
    const logprobs = this.#trie.logprobs();
    const { temperature } = this.#sampling;
    const path = temperature === 0 ? this.#trie.best(logprobs) : this.#draw(logprobs, temperature);
    return { path, logprobs };
  }

  /**
   * Chooses the path with index 0 without running the model; the log-probabilities are 0, a placeholder, for every
   * path. Used for a single path, and when the budget allows no token.
   */
  unscored(): ScoredPath {
    return { path: 0, logprobs: this.#choice.paths.map(() => 0) };
  }

  /** Returns the result for a path whose chosen tokens all fit in the budget. */
  settle({ path, logprobs }: ScoredPath): Settled {
    return {
      path,
      logprobs,
      option: { index: path, logprobs, probabilities: normalise(logprobs) },
      chosen: this.#trie.choices(path),
      next: this.#choice.after?.(path) ?? null,
    };
  }

  /**
   * Returns the result for a path that needs more than `allowance` chosen tokens: the option, with its first ending, if
   * `allowance` tokens decide it, otherwise no option.
   */
  cut({ path, logprobs }: ScoredPath, allowance: number): Settled {
    const index = this.#trie.firstPathOf(path);
    // All of the allowance counts as used, so later branches get none of it.
    const rest = { path: index, logprobs, chosen: allowance };
    if (this.#trie.settling(path) > allowance) return { ...rest, next: null };
    const option = { index, logprobs, probabilities: normalise(logprobs) };
    return { ...rest, option, next: this.#choice.after?.(index) ?? null };
  }

  /**
   * Returns the tokens to feed next so that the model continues after the chosen path. Moves the end of the queue's
   * line to the token before them.
   */
  tokensToFeed(path: number): readonly number[] {
    const tokens = this.#trie.path(path);
    // The answer goes on apart from the prompt, where the model has not read the path.
    if (this.inLine) this.#queue.keep(0);
    if (this.#queue.empty) return [...this.#suffix, ...tokens];
    if (this.#queue.continueAfter(this.#trie.nodeBeforeEnd(path))) return tokens.slice(-1);
    // The path was in an earlier part of the tree, whose cells are freed: all of its tokens must be fed again.
    this.#queue.keep(this.#suffix.length);
    return tokens;
  }

  /** Frees the cells of the last part of the tree. A branch that is alone reads its suffix, of one token, again. */
  #restart(): void {
    this.#queue.keep(this.#alone ? 0 : this.#suffix.length);
    if (this.#alone) this.#queue.push(this.#suffix);
  }

  /** Queues the tokens of the next part of the tree after the suffix. */
  #queuePart(): void {
    const itemOf = new Map([[0, this.#suffix.length - 1]]);
    const part = this.#parts.shift() ?? [];
    this.inLine = this.#alone && this.#trie.isLongLine(part);
    for (const node of part) {
      const after = itemOf.get(this.#trie.parent(node));
      if (after === undefined) throw new Error('a part of the tree has a node without its parent');
      itemOf.set(node, this.#queue.pushNode(this.#trie.token(node), after, node));
    }
  }

  #draw(logprobs: readonly number[], temperature: number): number {
    const probabilities = normalise(logprobs.map((logprob) => logprob / temperature));
    let left = this.#random.uniform();
    for (const [path, probability] of probabilities.entries()) {
      left -= probability;
      if (left < 0) return path;
    }
    return this.#trie.best(logprobs);
  }
}
