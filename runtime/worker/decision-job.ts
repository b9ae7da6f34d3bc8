import { at } from '../../lib/at.ts';
import type { DecideTask, ProbabilityOptions, Task, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { messageText } from '../../lib/prompt/tasks.ts';
import { averaged, indexOfHighest } from '../../lib/tasks/logprobs.ts';
import { orderings } from '../../lib/tasks/orders.ts';
import type { DecisionContract, OpenContract, Option, Question, Reading, Row } from '../contracts/contract.ts';
import { isObject, type PyValue, parsePython, pyObject } from '../contracts/python-json.ts';
import type { BranchSpec, JobResult, Sampling } from '../engine/job.ts';
import { checkLength } from '../text/prompt.ts';
import type { JobPlan } from './task-job.ts';

/** Holds a decision model's contract, bound to its tokenizer, and how its graph reads labels. */
export interface LoadedContract {
  contract: DecisionContract;
  open: OpenContract;
  /** True if the model has one output for each label of the contract; false if its outputs are the whole vocabulary. */
  narrow: boolean;
}

/** Plans the jobs that answer a batch: one, and further ones for contracts that read some questions again. */
export interface DecisionPlan {
  /** Number of prompt tokens of the first job. */
  promptTokens: number;
  /**
   * Runs all jobs with `run`, and returns the answers in the order of the tasks, with the number of prompt tokens of
   * all jobs.
   */
  answers(run: (plan: JobPlan) => Promise<JobResult>): Promise<{ answers: TaskAnswer[]; promptTokens: number }>;
}

/** Reads one question in one order of its options. */
interface Asked {
  task: DecideTask;
  /** For each option as asked, its index in the task. */
  order: readonly number[];
  reading: Reading;
  rows: readonly Row[];
  logprobs?: readonly number[];
}

/**
 * Turns a batch into rows of a decision model. Throws `unsupported_parameter` for a task that the model cannot answer,
 * `unsupported_modality` for media, `invalid_value` for too many options, and `input_too_long` for a row that is longer
 * than the model or its author allows. Yields after each question, so that other work may run.
 */
export function* planDecisions(
  loaded: LoadedContract,
  batch: TaskBatch,
  maxPromptLen: number,
): Generator<void, DecisionPlan> {
  const { contract, open } = loaded;
  if (batch.media.length > 0 || ('messages' in batch.input && batch.input.messages.some(hasMedia))) {
    const message = `${contract.info.name} models read text only here. Remove the images and audio.`;
    throw new AssayError('unsupported_modality', message);
  }
  const state = stateOf(batch.input);
  const tasks = batch.tasks.map((task) => answerable(task, contract));
  const questions = tasks.map((task) => questionOf(task, contract));
  const asking = open.about(state, questions);
  const limit = Math.min(maxPromptLen, contract.maxTokens);
  const asked: Asked[] = [];
  for (const [i, task] of tasks.entries()) {
    for (const one of inOrders(task, at(questions, i), batch.probabilities)) {
      asked.push(begin(one));
      yield;
    }
  }

  function begin({ task, question, order }: { task: DecideTask; question: Question; order: readonly number[] }): Asked {
    const one: Asked = { task, order, reading: asking.ask(question), rows: [] };
    proceed(one, []);
    return one;
  }
  /** Gives a reading the logits of its rows, and receives its next rows or its result. */
  function proceed(one: Asked, logits: readonly (readonly number[])[]): void {
    const { done, value } = one.reading.next(logits);
    if (!done) for (const { ids } of value as readonly Row[]) checkLength(ids.length, limit);
    one.rows = done ? [] : (value as readonly Row[]);
    // A cast: a generator that is done returns its result.
    if (done) one.logprobs = value as readonly number[];
  }

  const first = jobOf(asked, loaded);
  return {
    promptTokens: first ? tokensOf(first.plan) : 0,
    async answers(run) {
      let promptTokens = 0;
      for (let job = first; job; job = jobOf(asked, loaded)) {
        promptTokens += tokensOf(job.plan);
        const { branches } = await run(job.plan);
        let next = 0;
        for (const one of job.asked) {
          proceed(
            one,
            one.rows.map((row) => logitsOf(row, at(branches, next++).rows ?? [], open)),
          );
        }
      }
      return { answers: tasks.map((task) => answerOf(task, asked, contract, batch)), promptTokens };
    },
  };
}

function hasMedia({ parts }: { parts: readonly { type: string }[] }): boolean {
  return parts.some(({ type }) => type !== 'text');
}

/** Returns the state of a request: its JSON, its text, or its conversation as a list of messages. */
function stateOf(input: TaskBatch['input']): PyValue {
  if ('context' in input) return input.state === undefined ? input.context : parsePython(input.state);
  const messages = input.messages.map((message) => ({ role: message.role, text: messageText(message) }));
  const [only] = messages;
  if (only && messages.length === 1 && only.role === 'user') return only.text;
  return messages.map(({ role, text }) => pyObject(['role', role], ['content', text]));
}

/** Returns a task that a decision model can answer. Throws `unsupported_parameter` for any other. */
function answerable(task: Task, { info, limits }: DecisionContract): DecideTask & { options: readonly string[] } {
  const other = `${info.name} models only choose among options. Load a chat model for this.`;
  if (task.type === 'extract') throw new AssayError('unsupported_parameter', `They extract nothing: ${other}`);
  const { options, instruction } = task;
  if (!options) throw new AssayError('unsupported_parameter', `A question without options: ${other}`);
  if (instruction?.trim()) throw new AssayError('unsupported_parameter', `An instruction for a reason: ${other}`);
  const most = task.kind === 'score' ? limits.levels : limits.options;
  if (options.length <= most) return { ...task, options };
  const what = task.kind === 'score' ? `a score takes 1 to ${most} levels` : `at most ${most} options per choice`;
  throw new AssayError('invalid_value', `For ${info.name} models, ${what}, and the question has ${options.length}.`);
}

/** Returns the question as its contract asks it: what was sent, or else the task's fields. */
function questionOf(task: DecideTask & { options: readonly string[] }, contract: DecisionContract): Question {
  const { kind = 'choice', sent, options, descriptions } = task;
  const id = sent?.id ?? task.name;
  const instructions = sent?.instructions === undefined ? null : parsePython(sent.instructions);
  const asked = sent?.criteria === undefined && sent?.instructions === undefined ? task.question : instructions;
  const criteria = sent?.criteria === undefined ? null : parsePython(sent.criteria);
  if (kind === 'predicate') {
    // The task lists yes, then no.
    const described = (name: string, index: number): Option => {
      if (isObject(criteria)) {
        const description = criteria.get(name);
        return { name, description: description ?? null, ...(description === undefined ? { absent: true } : {}) };
      }
      const description = descriptions?.[index] ?? null;
      return { name, description, ...(description === null ? { absent: true } : {}) };
    };
    const [yes, no] = [described('true', 0), described('false', 1)];
    return { id, kind, instructions: asked, options: contract.trueFirst ? [yes, no] : [no, yes] };
  }
  if (kind === 'score') {
    const levels = Array.isArray(criteria) ? (criteria as readonly PyValue[]) : options;
    const all = levels.map(
      (level, i): Option => ({ name: String(i), description: withDescription(level, descriptions?.[i]) }),
    );
    return { id, kind, instructions: asked, options: all };
  }
  const choices = isObject(criteria)
    ? [...criteria].map(([name, description]): Option => ({ name, description }))
    : options.map((name, i): Option => ({ name, description: descriptions?.[i] ?? null }));
  return { id, kind, instructions: asked, options: choices };
}

/** Joins a level with its description, which OpenAI's format has beside the label. */
function withDescription(level: PyValue, description: string | null | undefined): PyValue {
  return description && typeof level === 'string' ? `${level}: ${description}` : level;
}

/** Returns a question once, or a choice in several orders of its options, with the task's index of each option. */
function inOrders(task: DecideTask, question: Question, probabilities: ProbabilityOptions | undefined) {
  const { kind, options } = question;
  const indices = options.map(({ name }, i) => {
    if (kind === 'predicate') return name === 'true' ? 0 : 1;
    return kind === 'score' ? i : (task.options ?? []).indexOf(name);
  });
  const orders = kind === 'choice' ? orderings(options.length, probabilities?.orders ?? 1) : [options.map((_, i) => i)];
  return orders.map((order) => ({
    task,
    question: { ...question, options: order.map((i) => at(options, i)) },
    order: order.map((i) => at(indices, i)),
  }));
}

/** Returns the job of all rows that are to be read next; null if there are none. */
function jobOf(asked: readonly Asked[], { open, narrow }: LoadedContract): { plan: JobPlan; asked: Asked[] } | null {
  const open_ = asked.filter(({ rows }) => rows.length > 0);
  const rows = open_.flatMap((one) => one.rows);
  const [first] = rows;
  if (!first) return null;
  // All rows begin with the same state; each keeps at least one token of its own.
  const shared = Math.min(...rows.map((row) => Math.min(row.shared, row.ids.length - 1)));
  const branches = rows.map((row) => branchOf(row, shared, narrow ? null : open.labels));
  return { plan: { prefix: first.ids.slice(0, shared), branches, budget: 0 }, asked: open_ };
}

function branchOf({ ids, read }: Row, shared: number, labels: readonly number[] | null): BranchSpec {
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

const SAMPLING: Sampling = {
  temperature: 0,
  topP: 1,
  seed: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  topLogprobs: null,
};

function logitsOf({ read }: Row, outputs: readonly Float32Array[], open: OpenContract): readonly number[] {
  if ('labels' in read) return [...at(outputs, 0)];
  if (!open.combine) throw new Error('the contract has no head to combine outputs');
  return open.combine(outputs.slice(0, -1), at(outputs, outputs.length - 1));
}

function tokensOf({ prefix, branches }: JobPlan): number {
  return branches.reduce((sum, { suffix }) => sum + suffix.length, prefix.length);
}

function answerOf(
  task: DecideTask & { options: readonly string[] },
  asked: readonly Asked[],
  contract: DecisionContract,
  { probabilities }: TaskBatch,
): TaskAnswer {
  const { name, options, kind = 'choice' } = task;
  const read = asked
    .filter((one) => one.task === task)
    .map(({ order, logprobs = [] }) => {
      const byOption: number[] = [];
      for (const [place, option] of order.entries()) byOption[option] = at(logprobs, place);
      return byOption;
    });
  const optionLogprobs = averaged(read);
  const json = JSON.stringify({ value: at(options, indexOfHighest(optionLogprobs)) });
  return probabilities ? { name, json, optionLogprobs, confidence: contract.confidence[kind] } : { name, json };
}
