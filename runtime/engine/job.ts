import type { Constraint } from '../../lib/grammar/constraint.ts';

/** A unit of work for the scheduler: one shared prefix and the branches that grow from it. A chat is a job of one branch. */
export interface Job {
  id: string;
  /** Token ids that all branches share; kept in the prefix cache. */
  prefix: readonly number[];
  /** In the order in which the budget serves them (open-points.md, "Answers"). */
  branches: readonly BranchSpec[];
  /** Completion tokens of all branches together. */
  budget: number;
  /** Milliseconds of `performance.now()` at which the job is given up with `timeout`. */
  deadline: number;
  /**
   * Called for each chosen token, in order, within the step that chose it. Branches run side by side, so of a job with
   * several, tokens may be reported that the budget then cuts; `JobResult` is what counts. `'stop'` ends the branch with this
   * token: what it said is enough.
   */
  onToken?(branch: number, token: ChosenToken): 'stop' | undefined;
}

export interface BranchSpec {
  /** Token ids after the prefix; at least one, so that there is a position to read. */
  suffix: readonly number[];
  /** A choice between whole token paths, decided before anything else is said. */
  choice?: Choice;
  /** What may be said; null: anything. With a `choice`, `choice.after` says what follows and this is not read. */
  constraint: Constraint | null;
  sampling: Sampling;
  maxTokens: number;
  /** Tokens that end the branch; not part of its text. */
  endTokens: ReadonlySet<number>;
  /** The job's budget does not count this branch: `maxTokens` alone bounds it. */
  unmetered?: boolean;
  /** Reports the probability of each chosen token (`BranchResult.choices`). Only with a `constraint`. */
  scored?: boolean;
}

export interface Choice {
  /**
   * One token path for each option (or for each of its endings), none a prefix of another (end paths with what follows the option, such as the closing
   * quote). At temperature 0 the option whose paths have the highest total probability wins, the first on a tie, and of
   * its paths the likeliest; above 0 one is drawn from the exact probabilities. A token is counted as chosen where the paths that are still possible differ. Tokens of a
   * path are not reported by `onToken`. A single path is settled without the model, with the log-probability 0.
   */
  paths: readonly (readonly number[])[];
  /**
   * The option that each path belongs to, where one may end in several ways; absent: each path is one of its own. An option is kept
   * where the budget ends between its endings: its first path is then the answer, with the reason `length`.
   */
  options?: readonly number[];
  /** What may be said after an option; absent or null: nothing, the branch ends with the choice. */
  after?(option: number): Constraint | null;
}

export interface Sampling {
  /** 0: the most probable token, the lowest id on a tie. */
  temperature: number;
  topP: number;
  seed: number;
  presencePenalty: number;
  frequencyPenalty: number;
  /** Number of alternatives to report; null: none. */
  topLogprobs: number | null;
}

export interface ChosenToken {
  token: number;
  logprob?: number;
  top?: readonly { token: number; logprob: number }[];
}

/** A token that the model chose under a grammar. */
export interface ScoredChoice {
  /** Natural logarithm of its probability among the tokens that the grammar allowed. */
  logprob: number;
  /** The bytes of the answer that it wrote: from `start` to before `end`. */
  start: number;
  end: number;
}

export interface BranchResult {
  /**
   * The chosen option; the total log-probability of each path, and the probability of each among the options (they add up to
   * 1). Only with `choice`; absent when the budget ended before it was settled.
   */
  option?: { index: number; logprobs: readonly number[]; probabilities: readonly number[] };
  /** Tokens after the suffix and the option's path: chosen and forced, without the end token. */
  tokens: readonly number[];
  /** The branch's constraint behind `tokens`: `closed()` gives the whole answer, also of one that was cut. */
  constraint: Constraint | null;
  /** One entry for each chosen token of `tokens`, in order. Only with `BranchSpec.scored`. */
  choices?: readonly ScoredChoice[];
  /** How many tokens the model chose. */
  chosen: number;
  /** `length`: cut by the budget, `maxTokens` or the model's context. */
  reason: 'stop' | 'length';
}

export interface JobResult {
  branches: readonly BranchResult[];
  promptTokens: number;
  /** Prompt tokens whose KV was in the prefix cache. */
  cachedTokens: number;
  queueMs: number;
  promptMs: number;
  generationMs: number;
}
