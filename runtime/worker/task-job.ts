import { setImmediate } from 'node:timers/promises';
import { at } from '../../lib/at.ts';
import type { DecideTask, FieldProbability, Task, TaskAnswer, TaskBatch, Usage } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { leavesOf } from '../../lib/json/leaves.ts';
import { COUNTED_LIMITS, checkLength, checkRequestShare, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { logSum } from '../../lib/tasks/logprobs.ts';
import type { TaskGrammar } from '../../lib/tasks/task-grammar.ts';
import {
  type AskedBranch,
  longestPath,
  type PromptLimits,
  readOptions,
  type WritingContract,
} from '../contracts/assay.ts';
import {
  asListed,
  type ContractText,
  type DecisionContract,
  type OpenContract,
  type Reading,
  type Row,
} from '../contracts/contract.ts';
import { answerOf, checkState, inOrders, type Question, questionOf, stateOf } from '../contracts/question.ts';
import type { BranchResult, BranchSpec, JobResult, JobSpec, Sampling, ScoredChoice } from '../engine/job-spec.ts';
import type { TextModel } from '../text/text-model.ts';

/** Holds a model's contract, bound to its tokenizer. */
export type LoadedContract = LoadedDecisions | LoadedWriting;
type LoadedWriting = { contract: WritingContract; text: TextModel };

/** Holds a decision model's contract, bound to its tokenizer, and how its graph reads labels. */
export interface LoadedDecisions {
  contract: DecisionContract;
  /** The text with which `open` was bound. */
  text: Pick<ContractText, 'inParts'>;
  open: OpenContract;
  /** True if the model has one output for each label of the contract; false if its outputs are the whole vocabulary. */
  narrow: boolean;
}

/** Describes a job of the engine, without its id and deadline. */
export type JobPlan = Omit<JobSpec, 'id' | 'deadline'>;

/** Plans the jobs that answer a batch: one, and further ones for contracts that read some questions again. */
export interface TaskPlan {
  /** Number of prompt tokens of the first job. */
  promptTokens: number;
  /**
   * Runs all jobs with `run`, and returns the answers in the order of the tasks. Throws `engine_failed` if
   * probabilities of options were requested and not computed.
   */
  answers(run: (plan: JobPlan) => Promise<JobResult>): Promise<{
    answers: TaskAnswer[];
    /** Names of the tasks whose answers were cut. */
    cut: string[];
    /** Prompt tokens of all jobs; of a model that writes text, also the tokens that its tasks share. */
    usage: Pick<Usage, 'promptTokens' | 'stateTokens' | 'mediaTokens'>;
  }>;
}

/**
 * Turns a batch into engine jobs, as the model's contract asks. Throws what `ASSAY.ask` throws, and for a
 * decision model `unsupported_parameter` for a task that it cannot answer, `unsupported_modality` for media,
 * `invalid_value` for too many options, and `input_too_long` for a row that is longer than the model or its author
 * allows, or if all rows have more than `MOST_REQUEST_TOKENS`. Yields between parts, so that other work may run.
 */
export function* planTasks(loaded: LoadedContract, batch: TaskBatch, limits: PromptLimits): Generator<void, TaskPlan> {
  if ('narrow' in loaded) return yield* planDecisions(loaded, batch, limits.maxPromptLen);
  return yield* planWriting(loaded, batch, limits);
}

/** Turns a batch into one job, with the branches in the order of their claims on the token budget (D-28). */
export function* planWriting(
  { contract, text }: LoadedWriting,
  batch: TaskBatch,
  limits: PromptLimits,
): Generator<void, TaskPlan & { plan: JobPlan }> {
  const { prefix, branches, promptTokens } = yield* contract.ask(text, batch, limits);
  // Ids beyond the vocabulary stand for features of media.
  const mediaTokens = prefix.filter((id) => id >= text.vocabulary.size).length;
  const served = branches.toSorted((a, b) => rank(a.task) - rank(b.task) || a.index - b.index);
  const specs = served.map(
    ({ suffix, grammar }): BranchSpec => ({
      suffix,
      ...choiceOf(grammar),
      sampling: { ...SAMPLING, temperature: batch.temperature },
      maxTokens: batch.maxOutputTokens,
      endTokens: text.vocabulary.end,
      ...(batch.probabilities ? scores(grammar) : {}),
    }),
  );
  const plan = { apart: true, prefix, branches: specs, budget: batch.maxOutputTokens };
  return {
    promptTokens,
    plan,
    async answers(run) {
      const { branches: results } = await run(plan);
      const byTask = Map.groupBy(
        served.map((one, i): AnsweredBranch => ({ ...one, result: at(results, i) })),
        ({ index }) => index,
      );
      const answered = batch.tasks.map((task, index) => ({ task, branches: byTask.get(index) ?? [] }));
      const cut = answered.filter((one) => one.branches.some(({ result }) => result.reason === 'length'));
      return {
        answers: answered.map(({ task, branches }) => taskAnswer(task, branches, batch)),
        cut: cut.map(({ task }) => task.name),
        usage: { promptTokens, stateTokens: prefix.length - mediaTokens, mediaTokens },
      };
    },
  };
}

/**
 * Returns the branch settings for a request with probabilities: all options of a choice are scored, outside the token
 * budget; elsewhere every chosen token is scored.
 */
function scores(grammar: TaskGrammar): Partial<BranchSpec> {
  if (grammar.choice) return { unmetered: true, maxTokens: longestPath(grammar) };
  return { scored: true, ...(grammar.measured ? { measured: grammar.measured } : {}) };
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

/** Sampling settings with a fixed seed: a repeated request gets the same answer at any temperature. */
const SAMPLING: Sampling = {
  temperature: 0,
  topP: 1,
  seed: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  topLogprobs: null,
};

type AnsweredBranch = AskedBranch & { result: BranchResult };

/**
 * Combines the results of a task's branches in one answer.
 *
 * @param answered results of the task's branches, one for each order of its options
 */
function taskAnswer(task: Task, answered: readonly AnsweredBranch[], batch: TaskBatch): TaskAnswer {
  const { name } = task;
  // A cast: every task has at least one branch.
  const [{ grammar, result }] = answered as [AnsweredBranch];
  if (!batch.probabilities) return { name, json: answer(grammar, result) };
  if (task.type === 'decide' && task.options) {
    const order = task.options.map((_, i) => i);
    const read = answered.map((one) => ({ order, logprobs: readOptions(one, one.result.option?.logprobs) }));
    return answerOf(task, read, batch, labelMassOf(answered));
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

/** Returns the member `labelMass` of an answer: the mean over the orders; nothing if there was nothing to score. */
function labelMassOf(answered: readonly AnsweredBranch[]): { labelMass?: number } {
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

/** Reads one question in one order of its options. */
interface Reader {
  task: DecideTask;
  question: Question;
  /** For each option as asked, its index in the task. */
  order: readonly number[];
  /** Logits that its `Reading` was given so far. */
  read: (readonly (readonly number[])[])[];
  rows: readonly Row[];
  logprobs?: readonly number[];
}

/** Turns a batch into rows of a decision model, one question after another. */
function* planDecisions(loaded: LoadedDecisions, batch: TaskBatch, maxPromptLen: number): Generator<void, TaskPlan> {
  const { contract, open, text } = loaded;
  const { name } = contract.info;
  checkState(batch, COUNTED_LIMITS * maxPromptLen);
  const state = stateOf(batch, true).value;
  const questions: Question[] = [];
  for (const task of batch.tasks) {
    questions.push(asListed(contract, questionOf(task, name, contract.limits)));
    yield;
  }
  const inParts = text.inParts();
  const asking = yield* inParts(() => open.about(state, questions));
  const limit = Math.min(maxPromptLen, contract.maxTokens);
  // A cast: `questionOf` throws for all other tasks.
  const tasks = batch.tasks as readonly DecideTask[];
  const all = tasks.flatMap((task, i) => inOrders(task, at(questions, i), batch).map((one) => ({ task, one })));
  const asked: Reader[] = [];
  let tokens = 0;
  for (const { task, one } of all) {
    const reader: Reader = { task, ...one, read: [], rows: [] };
    yield* proceed(reader, []);
    asked.push(reader);
    for (const row of reader.rows) tokens += row.ids.length - sharedOf(row);
    checkRequestShare(tokens, asked.length, all.length);
    yield;
  }

  /** Gives a reading the logits of its rows, and receives its next rows or its result. */
  function* proceed(one: Reader, logits: readonly (readonly number[])[]): Generator<void, void> {
    one.read.push(logits);
    const { done, value } = yield* inParts(() => {
      const reading = asking.ask(one.question);
      return one.read.map((each) => reading.next(each)).at(-1) as ReturnType<Reading['next']>;
    });
    if (!done) for (const { ids } of value) checkLength(ids.length, limit, READ_IN_WINDOWS);
    one.rows = done ? [] : value;
    if (done) one.logprobs = value;
  }

  /** Returns all rows that are to be read next. */
  const waiting = () => asked.flatMap(({ rows }) => rows);
  return {
    promptTokens: tokensOf(waiting()),
    async answers(run) {
      let promptTokens = 0;
      for (let rows = waiting(); rows.length > 0; rows = waiting()) {
        promptTokens += tokensOf(rows);
        const logits = new Map<Row, readonly number[]>();
        for (const job of jobsOf(rows, loaded)) {
          const { branches } = await run(job.plan);
          for (const [i, row] of job.rows.entries()) logits.set(row, logitsOf(row, at(branches, i).rows ?? [], open));
        }
        for (const one of asked.filter(({ rows: own }) => own.length > 0)) {
          const own = one.rows.map((row) => logits.get(row) ?? []);
          for (const _ of proceed(one, own)) await setImmediate();
        }
      }
      const answers = tasks.map((task) => {
        const own = asked.filter((one) => one.task === task);
        const read = own.map(({ order, logprobs = [] }) => ({ order, logprobs }));
        return answerOf(task, read, batch, { confidence: contract.confidence[task.kind ?? 'choice'] });
      });
      return { answers, cut: [], usage: { promptTokens } };
    },
  };
}

/** Returns the number of tokens that a row may share; each keeps at least one of its own. */
function sharedOf({ shared, ids }: Row): number {
  return Math.min(shared, ids.length - 1);
}

/**
 * Returns the jobs that read some rows, which all begin with the same state. A row is behind the same prefix whatever
 * rows are beside it.
 */
function jobsOf(rows: readonly Row[], { open, narrow }: LoadedDecisions): { plan: JobPlan; rows: Row[] }[] {
  return Array.from(Map.groupBy(rows, sharedOf), ([shared, own]) => {
    const prefix = at(own, 0).ids.slice(0, shared);
    const branches = own.map((row) => branchOf(row, shared, narrow ? null : open.labels));
    return { plan: { prefix, branches, budget: 0, apart: true }, rows: own };
  });
}

function branchOf({ ids, read }: Row, shared: number, labels: readonly number[] | null): BranchSpec {
  if ('joint' in read) throw new Error('models that read whole prompts have no cache');
  const positions = 'labels' in read ? [ids.length - 1] : [...read.options, read.decide];
  const outputs = 'labels' in read ? read.labels.map((label) => (labels ? at(labels, label) : label)) : undefined;
  return {
    suffix: ids.slice(shared),
    read: { positions: positions.map((position) => position - shared), ...(outputs ? { outputs } : {}) },
    constraint: null,
    sampling: SAMPLING,
    maxTokens: 0,
    endTokens: new Set(),
    unmetered: true,
  };
}

function logitsOf({ read }: Row, outputs: readonly Float32Array[], open: OpenContract): readonly number[] {
  if ('labels' in read) return [...at(outputs, 0)];
  if (!open.combine) throw new Error('the contract has no head to combine outputs');
  return open.combine(outputs.slice(0, -1), at(outputs, outputs.length - 1));
}

/** Counts the tokens of rows: what all may share once, and each row's own. */
function tokensOf(rows: readonly Row[]): number {
  const shared = Math.max(0, ...rows.map(sharedOf));
  return rows.reduce((sum, row) => sum + row.ids.length - sharedOf(row), shared);
}
