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
  /** Called for each chosen token, in order, within the step that chose it. */
  onToken?(branch: number, token: ChosenToken): void;
}

export interface BranchSpec {
  /** Token ids after the prefix; at least one, so that there is a position to read. */
  suffix: readonly number[];
  /** A choice between whole token paths, decided by total log-probability before anything else is said. */
  choice?: { paths: readonly (readonly number[])[] };
  /** What may be said (after the choice, the constraint that belongs to the chosen path); null: anything. */
  constraint: Constraint | null | ((option: number) => Constraint | null);
  sampling: Sampling;
  maxTokens: number;
  /** Tokens that end the branch; not part of its text. */
  endTokens: ReadonlySet<number>;
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

export interface BranchResult {
  /** Index of the chosen option and the log-probability of each; only with `choice`. */
  option?: { index: number; logprobs: readonly number[] };
  /** Tokens after the suffix and the option: chosen and forced, without the end token. */
  tokens: readonly number[];
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
