import type { Priority } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import type { MediaFeatures } from './forward/media-feeds.ts';

/**
 * Describes a unit of work for the engine: one shared prefix and the branches that grow from it. A chat is a job of one
 * branch.
 */
export interface JobSpec {
  id: string;
  /** Token ids that all branches share. Their KV stays cached after the job while memory allows. */
  prefix: readonly number[];
  /** Features of the images and recordings whose ids are in the prefix. */
  media?: readonly MediaFeatures[];
  /** Branches, in the order in which they may use the budget. */
  branches: readonly BranchSpec[];
  /** Maximum number of completion tokens of all branches together that are not `unmetered`. */
  budget: number;
  /** Scheduling priority. Default: `interactive`. */
  priority?: Priority;
  /** Name of who sent the job. Callers get equal shares of the model's runs. Default: `''`. */
  caller?: string;
  /** Jobs reuse the cached prefixes of jobs with the same scope only. Default: `''`. */
  cacheScope?: string;
  /** Time at which the job fails with `timeout`, in milliseconds on the clock of `EngineOptions.now`. */
  deadline: number;
  /**
   * Receives each chosen token, in order, within the step that chose it. Branches run side by side, so a job with
   * several may report tokens that the budget cuts afterwards, and all tokens of a branch again if it begins again;
   * `JobResult` is authoritative. Returning `'stop'` ends the branch after this token.
   */
  onToken?(branch: number, token: ChosenToken): 'stop' | undefined;
  /**
   * True to compute each branch apart from the prefix and from the other branches, so that its answer is the same in
   * every bit alone and in company. For questions about a text; the answer of a single branch does not stay cached.
   * Where the graph cannot do it, branches are computed side by side.
   */
  apart?: boolean;
  /** Receives the tokens that the constraint forces, in order with those of `onToken`, under the same conditions. */
  onForced?(branch: number, tokens: readonly number[]): void;
}

export interface BranchSpec {
  /** Token ids after the prefix, at least one. The logits after the last one decide the first token of the answer. */
  suffix: readonly number[];
  /** A choice between whole token paths, made before anything else is decoded. */
  choice?: ChoiceSpec;
  /**
   * Constraint on the tokens of the answer; null allows any. Ignored with a `choice`, where `choice.after` constrains
   * what follows.
   */
  constraint: Constraint | null;
  sampling: Sampling;
  maxTokens: number;
  /** Tokens that end the branch; they are not part of its answer. */
  endTokens: ReadonlySet<number>;
  /** True if only `maxTokens` bounds this branch: the job's budget does not count it. */
  unmetered?: boolean;
  /** Outputs to read instead of an answer. Needs `unmetered`; `choice` and `constraint` are then not used. */
  read?: ReadRows;
  /** True to report the probability of each chosen token (`BranchResult.choices`). Needs a `constraint`. */
  scored?: boolean;
  /**
   * Constraint with the same text as `constraint` that allows more: what it allows in addition as the first token is
   * measured (`BranchResult.excluded`), and not chosen. The text that `constraint` forces then follows the first
   * choice.
   */
  measured?: Constraint;
}

/** Names the outputs of the model that a branch reads instead of choosing tokens. */
export interface ReadRows {
  /** Indices in the suffix, in ascending order, after whose tokens the outputs are read. */
  positions: readonly number[];
  /** Indices of the outputs to read at each position; absent: all. */
  outputs?: readonly number[];
}

/** Describes a choice between whole token paths, such as the options of a decide task. */
export interface ChoiceSpec {
  /**
   * One token path for each option, or for each of its endings. No path is a prefix of another, so a path includes what
   * follows the option, such as the closing quote.
   *
   * - Temperature 0: chooses the option with the highest total probability over its paths, the first on a tie, and its
   *   most probable path. Above 0: draws a path from the exact probabilities.
   * - A single path is chosen without running the model, with log-probability 0.
   * - A token counts as chosen if the paths that are still possible differ at it. `onToken` reports no tokens of paths.
   */
  paths: readonly (readonly number[])[];
  /**
   * Index of the option of each path, if options have several endings. Default: each path is its own option. If the
   * budget ends when the option is known but not its ending, the first path of the option is the answer, with reason
   * `length`.
   */
  options?: readonly number[];
  /**
   * Returns the constraint on the text after a path. If absent or null, nothing follows and the branch ends with the
   * choice.
   */
  after?(path: number): Constraint | null;
}

export interface Sampling {
  /** 0 chooses the most probable token, the lowest id on a tie. */
  temperature: number;
  topP: number;
  seed: number;
  presencePenalty: number;
  frequencyPenalty: number;
  /** Number of alternatives to report with each token; null reports no log-probabilities. */
  topLogprobs: number | null;
}

export interface ChosenToken {
  token: number;
  logprob?: number;
  top?: readonly { token: number; logprob: number }[];
}

/** Describes a token that the model chose under a grammar. */
export interface ScoredChoice {
  /** Natural logarithm of the token's probability among the tokens that the grammar allowed. */
  logprob: number;
  /** Byte offset in the answer at which the token's text begins. */
  start: number;
  /** Byte offset in the answer after the last byte of the token's text. */
  end: number;
}

export interface BranchResult {
  /**
   * Index of the chosen path, the total log-probability of each path, and their probabilities, which add up to 1.
   * Present only with `choice`; absent if the budget ended before the option was known.
   */
  option?: { index: number; logprobs: readonly number[]; probabilities: readonly number[] };
  /** Outputs at each position of `BranchSpec.read`, in order. Present only with `read`. */
  rows?: readonly Float32Array[];
  /** Chosen and forced tokens after the suffix and the option's path, without the end token. */
  tokens: readonly number[];
  /**
   * The branch's constraint after `tokens`; null if it had none. Its `closed()` returns the whole answer, even if the
   * answer was cut.
   */
  constraint: Constraint | null;
  /** Score of each chosen token of `tokens`, in order. Present only with `BranchSpec.scored`. */
  choices?: readonly ScoredChoice[];
  /**
   * Probability of the tokens that `BranchSpec.measured` allows first and `constraint` does not, among all that
   * `measured` allows. Present only with `measured`, and if a token was chosen.
   */
  excluded?: number;
  /** Number of tokens that count against the budget: those that the model chose, not forced ones. */
  chosen: number;
  /** `stop` if the answer is complete; `length` if the budget, `maxTokens` or the model's context length cut it. */
  reason: 'stop' | 'length';
}

export interface JobResult {
  branches: readonly BranchResult[];
  promptTokens: number;
  /** Prompt tokens whose KV came from the prefix cache. */
  cachedTokens: number;
  queueMs: number;
  promptMs: number;
  generationMs: number;
}
