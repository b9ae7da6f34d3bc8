import { atOnce } from '../../lib/at-once.ts';
import type { ExtractTask, TaskAnswer } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import type { ModelCapabilities } from '../../lib/schema/model-list.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import type { PyValue } from '../contracts/python-json.ts';
import type { Question, QuestionLimits } from '../contracts/question.ts';

/** Describes one sequence of tokens that the model reads. */
export interface EncoderRow {
  ids: readonly number[];
  /** Number of tokens of the text that all rows of a request repeat. */
  shared: number;
  /** Positions of the tokens whose logits or states are read. */
  markers?: readonly number[];
  /** Number of the question's kind: 0 for a choice, 1 for a score, 2 for a predicate. */
  kind?: number;
  /** Position from which tokens belong to the second text of a pair. */
  secondFrom?: number;
  /**
   * For rows with several questions: the part that each token belongs to, and the question and option of each logit.
   */
  parts?: { tokens: readonly number[]; questions: readonly number[]; options: readonly number[] };
}

/** Holds the numbers that the model computed for a row, by the names of the graph's outputs. */
export type RowOutput = Readonly<Record<string, Float32Array>>;

/** Runs one of a model's smaller graphs, which read the states of a row. */
export type RunHead = (
  role: string,
  feeds: Readonly<Record<string, { data: Float32Array | readonly number[]; dims: readonly number[] }>>,
) => Promise<Float32Array>;

/** Holds a task as rows, and reads its answer from what the model computes for them. */
export interface Planned {
  rows: readonly EncoderRow[];
  /** Returns the answer. `outputs` has those of `rows`, in that order. */
  read(outputs: readonly RowOutput[], run: RunHead): Promise<PlannedAnswer> | PlannedAnswer;
}

/** Holds the answer to a question, as log-probabilities in the order of its options, or to an extraction. */
export type PlannedAnswer =
  | { logprobs: readonly number[]; abstained?: boolean }
  | { extracted: Pick<TaskAnswer, 'json' | 'fields'> };

export interface PlanOptions {
  /** True for the author's temperature, false for the model's own probabilities. */
  calibrated: boolean;
  /** True to read a long text in overlapping windows, if the family defines that. */
  windows: boolean;
}

/** Writes tasks as rows of tokens and reads their answers, as the author's code does. */
export interface Adapter {
  readonly capabilities: ModelCapabilities;
  /** Limits of choices and scores, if they differ from each other. */
  readonly limits?: QuestionLimits;
  /** Formula of the author's confidence for each kind of question; absent if the author states none. */
  readonly confidence?: DecisionContract['confidence'];
  /** True if the author's code reads a conversation as a list. Absent: it is written as lines. */
  readonly readsMessages?: boolean;
  /** Reason why an answer may depend on the other questions of its request, if it does by design. */
  readonly dependence?: string;
  /**
   * Plans questions about a text one after another, and calls `planned` for each. Yields between parts of the work, so
   * that other work may run. Throws `input_too_long` for a text that does not fit.
   */
  decide(
    questions: readonly Question[],
    state: PyValue,
    options: PlanOptions,
    planned: (plan: Planned) => void,
  ): Generator<void, void>;
  /** Plans an extraction, in parts. Absent for models without spans. Throws `unsupported_schema` for other shapes. */
  extract?(task: ExtractTask, text: string, options: PlanOptions): Generator<void, Planned>;
}

/** Plans questions in one go. */
export function plansAtOnce(
  { decide }: Pick<Adapter, 'decide'>,
  ...about: [questions: readonly Question[], state: PyValue, options: PlanOptions]
): Planned[] {
  const plans: Planned[] = [];
  atOnce(decide(...about, (plan) => plans.push(plan)));
  return plans;
}

/** Returns the error for a text that the model cannot read whole. */
export function tooLong(tokens: number, most: number, windows = false): AssayError {
  const advice = windows ? ', or start the server with --long-input windows' : '';
  return new AssayError(
    'input_too_long',
    `The text and a question have ${tokens} tokens together, and this model reads at most ${most}. Send less text${advice}.${READ_IN_WINDOWS}`,
  );
}
