import type { Priority } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import type { MediaFeatures } from './media-feeds.ts';

/**
 * Describes a unit of work for the scheduler: one shared prefix and the branches that grow from it. A chat is a job of
 * one branch.
 */
export interface Job {
  id: string;
  /** Token ids that all branches share; they stay in the prefix cache. */
  prefix: readonly number[];
  /** The media that ids of the prefix represent. */
  media?: readonly MediaFeatures[];
  /** In the order in which the budget serves them. */
  branches: readonly BranchSpec[];
  /** Completion tokens of all branches together. */
  budget: number;
  /** Absent: `interactive`. */
  priority?: Priority;
  /** Time of `performance.now()` at which the job fails with `timeout`, in milliseconds. */
  deadline: number;
  /**
   * Receives each chosen token, in order, within the step that chose it. Branches run side by side, so a job with
   * several may report tokens that the budget cuts afterwards; `JobResult` is authoritative. Returning `'stop'` ends
   * the branch with this token.
   */
  onToken?(branch: number, token: ChosenToken): 'stop' | undefined;
}

export interface BranchSpec {
  /** Token ids after the prefix; at least one, whose logits decide the first token. */
  suffix: readonly number[];
  /** A choice between whole token paths, made before anything else is decoded. */
  choice?: Choice;
  /** Limits the tokens; null: any. Ignored with a `choice`: then `choice.after` limits what follows. */
  constraint: Constraint | null;
  sampling: Sampling;
  maxTokens: number;
  /** Tokens that end the branch; they are not part of its text. */
  endTokens: ReadonlySet<number>;
  /** The job's budget does not count this branch: `maxTokens` alone bounds it. */
  unmetered?: boolean;
  /** Reports the probability of each chosen token (`BranchResult.choices`). Only with a `constraint`. */
  scored?: boolean;
}

export interface Choice {
  /**
   * One token path for each option, or for each of its endings. No path is a prefix of another, so a path ends with
   * what follows the option, such as the closing quote. At temperature 0 the option whose paths have the highest total
   * probability wins, the first on a tie, and of its paths the likeliest; above 0 one is drawn from the exact
   * probabilities. A token counts as chosen if the paths that are still possible differ there. `onToken` does not
   * report the tokens of a path. A single path is chosen without the model, with the log-probability 0.
   */
  paths: readonly (readonly number[])[];
  /**
   * The option of each path, if options may end in several ways; absent: each path is its own option. When the budget
   * ends between the endings of an option, its first path is the answer, with the reason `length`.
   */
  options?: readonly number[];
  /**
   * Returns the constraint of what follows a path; absent or null: nothing follows, the branch ends with the choice.
   */
  after?(option: number): Constraint | null;
}

export interface Sampling {
  /** 0 chooses the most probable token, the lowest id on a tie. */
  temperature: number;
  topP: number;
  seed: number;
  presencePenalty: number;
  frequencyPenalty: number;
  /** Number of alternatives to report with each token; null: no log-probabilities. */
  topLogprobs: number | null;
}

export interface ChosenToken {
  token: number;
  logprob?: number;
  top?: readonly { token: number; logprob: number }[];
}

/** Describes a token that the model chose under a grammar. */
export interface ScoredChoice {
  /** Natural logarithm of its probability among the tokens that the grammar allowed. */
  logprob: number;
  /** The bytes of the answer that it wrote: from `start` to before `end`. */
  start: number;
  end: number;
}

export interface BranchResult {
  /**
   * The chosen path, the total log-probability of each path, and their probabilities, which add up to 1. Only with
   * `choice`; absent when the budget ended before the option was settled.
   */
  option?: { index: number; logprobs: readonly number[]; probabilities: readonly number[] };
  /** Chosen and forced tokens after the suffix and the option's path, without the end token. */
  tokens: readonly number[];
  /** The branch's constraint after `tokens`; its `closed()` returns the whole answer, also of one that was cut. */
  constraint: Constraint | null;
  /** One entry for each chosen token of `tokens`, in order. Only with `BranchSpec.scored`. */
  choices?: readonly ScoredChoice[];
  /** Tokens that the model chose. */
  chosen: number;
  /** `length`: cut by the budget, `maxTokens` or the model's context. */
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
