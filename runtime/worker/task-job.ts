import { at } from '../../lib/at.ts';
import type { FieldProbability, Task, TaskAnswer, TaskBatch, Usage } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { QuotedTexts } from '../../lib/grammar/text/quoted-texts.ts';
import { leavesOf } from '../../lib/json/leaves.ts';
import { checkRequestTokens, MOST_REQUEST_TOKENS, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { averaged, indexOfHighest, logSum, normalised } from '../../lib/tasks/logprobs.ts';
import { orderings, reordered } from '../../lib/tasks/orders.ts';
import { type TaskGrammar, taskGrammar } from '../../lib/tasks/task-grammar.ts';
import type { BranchResult, BranchSpec, JobResult, JobSpec, Sampling, ScoredChoice } from '../engine/job-spec.ts';
import { checkLength, taskEncoder } from '../text/prompt.ts';
import type { TextModel } from '../text/text-model.ts';

/** Describes a job of the engine, without its id and deadline. */
export type JobPlan = Omit<JobSpec, 'id' | 'deadline'>;

export interface TaskPlan {
  /** Number of prompt tokens: the shared prefix once, and every task's own part (D-27). */
  promptTokens: number;
  /** Tokens of the shared prefix: of its media, and of the rest. */
  shared: Required<Pick<Usage, 'stateTokens' | 'mediaTokens'>>;
  plan: JobPlan;
  /**
   * Returns the answers in the order of the tasks, and the names of the tasks whose answers were cut. Throws
   * `engine_failed` if probabilities of options were requested and not computed.
   */
  answers(result: JobResult): { answers: TaskAnswer[]; cut: string[] };
}

/** Describes a task as one branch answers it, with its options in one order. */
interface TaskBranch {
  task: Task;
  /**
   * Index of the task in the batch. A question that is asked with several orders of its options has several branches.
   */
  index: number;
  /** Index in the task's options of each option that the branch shows; empty if it shows none. */
  order: readonly number[];
}

interface EncodedBranch extends TaskBranch {
  grammar: TaskGrammar;
  own: readonly number[];
}

/**
 * Turns a batch into an engine job with one branch for each task and each order of its options, sorted by their claim
 * on the token budget (D-28). Throws `unsupported_modality` for media that the model does not read, `invalid_value`
 * for a task that quotes from an input without text, `unsupported_schema` for an answer that no grammar can enforce,
 * `engine_failed` if the chat template fails, and `input_too_long` if a task with its prefix has more than
 * `maxPromptLen` tokens or, with probabilities, exceeds `contextLength` together with its longest option, or if all
 * tasks together have more than `MOST_REQUEST_TOKENS`.
 *
 * Yields after the prefix and after each branch, so that a large batch does not keep the process from other requests.
 *
 * @param contextLength maximum tokens of a prompt and its answer together
 */
export function* planTasks(
  text: TextModel,
  batch: TaskBatch,
  { maxPromptLen, contextLength }: { maxPromptLen: number; contextLength: number },
): Generator<void, TaskPlan> {
  const encoder = taskEncoder(text, batch, maxPromptLen);
  const { prefix } = encoder;
  const served: EncodedBranch[] = [];
  const verbatim = batch.tasks.find((task) => task.type === 'extract' && task.verbatim);
  const quoted = new QuotedTexts(verbatim ? textsOf(batch) : []);
  if (verbatim && quoted.beginnings.length === 0) {
    throw new AssayError('invalid_value', 'verbatim needs a text in the input to quote from; send one, or omit it.', {
      param: 'verbatim',
    });
  }
  const branchCount = batch.tasks.reduce((sum, task) => sum + orderCount(task, batch), 0);
  let promptTokens = prefix.length;
  yield;
  for (const [index, task] of batch.tasks.entries()) {
    for (const one of inOrders(task, index, batch)) {
      const own = encoder.branch(one.task);
      const grammar = taskGrammar(one.task, text.vocabulary, quoted);
      // `grammar.head`, the text that begins every answer, is part of the prompt. The length is checked here, before
      // further grammars are compiled.
      checkLength(prefix.length + own.length + grammar.head.length, maxPromptLen, READ_IN_WINDOWS);
      // With probabilities, options that do not fit in the context are an error, because no probability can express
      // that.
      if (batch.probabilities)
        checkLength(prefix.length + own.length + grammar.head.length + longest(grammar), contextLength);
      served.push({ ...one, grammar, own });
      promptTokens += own.length;
      const tokens = promptTokens - prefix.length;
      if (tokens > MOST_REQUEST_TOKENS)
        checkRequestTokens(Math.round((tokens / served.length) * branchCount), 'about ');
      yield;
    }
  }
  served.sort((a, b) => rank(a.task) - rank(b.task) || a.index - b.index);
  // Ids beyond the vocabulary stand for features of media.
  const mediaTokens = prefix.filter((id) => id >= text.vocabulary.size).length;
  const specs = served.map(
    ({ own, grammar }): BranchSpec => ({
      suffix: [...own, ...grammar.head],
      ...choiceOf(grammar),
      sampling: taskSampling(batch.temperature),
      maxTokens: batch.maxOutputTokens,
      endTokens: text.vocabulary.end,
      ...(batch.probabilities ? scores(grammar) : {}),
    }),
  );
  return {
    shared: { stateTokens: prefix.length - mediaTokens, mediaTokens },
    promptTokens,
    plan: { apart: true, prefix, branches: specs, budget: batch.maxOutputTokens },
    answers({ branches: results }) {
      const byTask = Map.groupBy(
        served.map((one, i): Answered => ({ ...one, result: at(results, i) })),
        ({ index }) => index,
      );
      const answered = batch.tasks.map((task, index) => ({ task, branches: byTask.get(index) ?? [] }));
      const isCut = ({ branches }: { branches: readonly Answered[] }) =>
        branches.some(({ result }) => result.reason === 'length');
      return {
        answers: answered.map(({ task, branches }) => taskAnswer(task, branches, batch)),
        cut: answered.filter(isCut).map(({ task }) => task.name),
      };
    },
  };
}

/** Returns the number of branches of a task (`inOrders`). */
function orderCount(task: Task, { probabilities }: TaskBatch): number {
  return task.type === 'decide' && task.options ? Math.min(task.options.length, probabilities?.orders ?? 1) : 1;
}

/** Returns the task once; with probabilities, once for each order of its options. */
function inOrders(task: Task, index: number, { probabilities }: TaskBatch): TaskBranch[] {
  if (task.type === 'extract' || !task.options) return [{ task, index, order: [] }];
  const orders = orderings(task.options.length, probabilities?.orders ?? 1);
  return orders.map((order, i) => ({ task: i === 0 ? task : reordered(task, order), index, order }));
}

/**
 * Returns the branch settings for a request with probabilities: all options of a choice are scored, outside the token
 * budget; elsewhere every chosen token is scored.
 */
function scores(grammar: TaskGrammar): Partial<BranchSpec> {
  if (grammar.choice) return { unmetered: true, maxTokens: longest(grammar) };
  return { scored: true, ...(grammar.measured ? { measured: grammar.measured } : {}) };
}

/** Returns the texts of a batch's input, which values are quoted from. */
function textsOf({ input }: TaskBatch): string[] {
  if ('context' in input) return [input.context];
  return input.messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])));
}

/** Returns the number of tokens of the longest path of a choice; 0 without a choice. */
function longest({ choice }: TaskGrammar): number {
  return Math.max(0, ...(choice?.paths ?? []).map(({ length }) => length));
}

/** Returns the task's rank in the order in which tasks may use the budget (D-28). */
function rank(task: Task): number {
  if (task.type === 'extract') return 2;
  return task.options ? 0 : 1;
}

function choiceOf(grammar: TaskGrammar): Pick<BranchSpec, 'choice' | 'constraint'> {
  if (!grammar.choice) return { constraint: grammar.constraint() };
  const { paths, options } = grammar.choice;
  return { choice: { paths, options, after: (path) => grammar.constraint(path) }, constraint: null };
}

/** Returns sampling settings with a fixed seed: a repeated request gets the same answer at any temperature. */
function taskSampling(temperature: number): Sampling {
  return { temperature, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };
}

type Answered = EncodedBranch & { result: BranchResult };

/**
 * Combines the results of a task's branches in one answer.
 *
 * @param answered results of the task's branches, one for each order of its options
 */
function taskAnswer(task: Task, answered: readonly Answered[], { probabilities }: TaskBatch): TaskAnswer {
  const { name } = task;
  // A cast: every task has at least one branch.
  const [{ grammar, result }] = answered as [Answered];
  if (!probabilities) return { name, json: answer(grammar, result) };
  if (task.type === 'decide' && task.options) {
    const optionLogprobs = averaged(answered.map(logprobsOfOptions));
    const json = JSON.stringify({ value: task.options[indexOfHighest(optionLogprobs)] });
    return { name, json, optionLogprobs, ...labelMassOf(answered) };
  }
  const fields = result.constraint ? fieldProbabilities(result.constraint, result.choices ?? []) : [];
  const certainty = Math.exp((result.choices ?? []).reduce((sum, { logprob }) => sum + logprob, 0));
  return {
    name,
    json: answer(grammar, result),
    fields,
    ...(grammar.measured ? { absent: result.excluded ?? 0, certainty } : {}),
  };
}

/** Returns the normalized log-probability of each option, in the task's order of options, not the branch's. */
function logprobsOfOptions({ task, order, grammar, result }: Answered): number[] {
  const paths = result.option?.logprobs;
  const options = task.type === 'decide' ? task.options : undefined;
  if (!paths || !grammar.choice || !options)
    throw new AssayError('engine_failed', 'A question was not settled. Ask it alone, or with fewer options.');
  const { options: ofPath } = grammar.choice;
  const shown = options.map((_, option) => logSum(paths.filter((_, path) => ofPath[path] === option)));
  const given: number[] = [];
  for (const [place, option] of order.entries()) given[option] = at(shown, place);
  return normalised(given);
}

/** Returns the member `labelMass` of an answer: the mean over the orders; nothing if there was nothing to score. */
function labelMassOf(answered: readonly Answered[]): { labelMass?: number } {
  const scored = answered.flatMap(({ result }) => result.option?.logprobs ?? []);
  if (scored.length === answered.length) return {};
  return { labelMass: Math.min(1, Math.exp(logSum(scored)) / answered.length) };
}

function answer(grammar: TaskGrammar, { option, constraint }: BranchResult): string {
  if (grammar.choice && !option) return grammar.unsettled;
  return constraint?.closed() ?? grammar.unsettled;
}

const encoder = new TextEncoder();

/**
 * Returns the probability of each leaf value of an answer: the product of the probabilities of the tokens that the
 * model chose to write it. A token that writes parts of several values counts for the first one; a token that writes
 * only structure (a name, the end of a list) counts for none. Values that the budget cut, or that were not reached, are
 * omitted.
 *
 * @param constraint constraint that wrote the answer
 * @param choices tokens that the model chose under it, in order
 */
export function fieldProbabilities(constraint: Constraint, choices: readonly ScoredChoice[]): FieldProbability[] {
  const json = constraint.closed();
  // The bytes of `json` after the common prefix only close an answer that was cut.
  const settled = sharedLength(encoder.encode(json), encoder.encode(constraint.text()));
  const fields: FieldProbability[] = [];
  let next = 0;
  let bytes = { text: 0, count: 0 };
  const byteAt = (text: number): number => {
    bytes = { text, count: bytes.count + encoder.encode(json.slice(bytes.text, text)).length };
    return bytes.count;
  };
  for (const { path, start, end } of leavesOf(json)) {
    const [from, to] = [byteAt(start), byteAt(end)];
    let logprob = 0;
    for (; next < choices.length && at(choices, next).start < to; next++) {
      const choice = at(choices, next);
      if (choice.end > from) logprob += choice.logprob;
    }
    if (to <= settled) fields.push({ path, probability: Math.exp(logprob) });
  }
  return fields;
}

/** Returns the length in bytes of the common prefix of two texts. */
function sharedLength(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i++) if (one[i] !== other[i]) return i;
  return length;
}
