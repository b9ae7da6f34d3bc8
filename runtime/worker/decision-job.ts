import { at } from '../../lib/at.ts';
import type { DecideTask, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { asListed, type DecisionContract, type OpenContract, type Reading, type Row } from '../contracts/contract.ts';
import { type Asked, answerOf, inOrders, questionOf, stateOf } from '../contracts/question.ts';
import type { BranchSpec, JobResult, Sampling } from '../engine/job-spec.ts';
import { checkLength } from '../text/prompt.ts';
import type { JobPlan } from './task-job.ts';

/** Holds a decision model's contract, bound to its tokenizer, and how its graph reads labels. */
export interface LoadedContract {
  contract: DecisionContract;
  open: OpenContract;
  /** True if the model has one output for each label of the contract; false if its outputs are the whole vocabulary. */
  narrow: boolean;
  /**
   * Names how rows are read behind the shared tokens: `apart` (`JobSpec.apart`) and `one by one`, so that a question
   * has the same answer, bit for bit, alone and among others; or `packed`, which is faster than one by one, and equal
   * up to rounding.
   */
  rows: 'apart' | 'one by one' | 'packed';
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
interface Reader {
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
  const { name } = contract.info;
  const state = stateOf(batch, true).value;
  const questions = batch.tasks.map((task) => asListed(contract, questionOf(task, name, contract.limits)));
  const asking = open.about(state, questions);
  const limit = Math.min(maxPromptLen, contract.maxTokens);
  // A cast: `questionOf` throws for all other tasks.
  const tasks = batch.tasks as readonly DecideTask[];
  const asked: Reader[] = [];
  for (const [i, task] of tasks.entries()) {
    for (const one of inOrders(task, at(questions, i), batch)) {
      asked.push(begin(task, one));
      yield;
    }
  }

  function begin(task: DecideTask, { question, order }: Asked): Reader {
    const one: Reader = { task, order, reading: asking.ask(question), rows: [] };
    proceed(one, []);
    return one;
  }
  /** Gives a reading the logits of its rows, and receives its next rows or its result. */
  function proceed(one: Reader, logits: readonly (readonly number[])[]): void {
    const { done, value } = one.reading.next(logits);
    if (!done) for (const { ids } of value as readonly Row[]) checkLength(ids.length, limit, READ_IN_WINDOWS);
    one.rows = done ? [] : (value as readonly Row[]);
    // A cast: a generator that is done returns its result.
    if (done) one.logprobs = value as readonly number[];
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
        for (const one of asked)
          if (one.rows.length > 0)
            proceed(
              one,
              one.rows.map((row) => logits.get(row) ?? []),
            );
      }
      const answers = tasks.map((task) => {
        const own = asked.filter((one) => one.task === task);
        const read = own.map(({ order, logprobs = [] }) => ({ order, logprobs }));
        return answerOf(task, read, batch, { confidence: contract.confidence[task.kind ?? 'choice'] });
      });
      return { answers, promptTokens };
    },
  };
}

/** Returns the number of tokens that a row may share; each keeps at least one of its own. */
function sharedOf({ shared, ids }: Row): number {
  return Math.min(shared, ids.length - 1);
}

/**
 * Returns the jobs that read some rows, which all begin with the same state. A row that is not packed is behind the
 * same prefix whatever rows are beside it.
 */
function jobsOf(rows: readonly Row[], { open, narrow, rows: way }: LoadedContract): { plan: JobPlan; rows: Row[] }[] {
  const least = Math.min(...rows.map(sharedOf));
  const groups = Map.groupBy(rows, (row) => (way === 'packed' ? least : sharedOf(row)));
  return [...groups].flatMap(([shared, all]) => {
    const prefix = at(all, 0).ids.slice(0, shared);
    const jobs = way === 'one by one' ? all.map((row) => [row]) : [all];
    return jobs.map((own) => {
      const branches = own.map((row) => branchOf(row, shared, narrow ? null : open.labels));
      return { plan: { prefix, branches, budget: 0, apart: way !== 'packed' }, rows: own };
    });
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

/** Counts the tokens of rows: what all may share once, and each row's own. */
function tokensOf(rows: readonly Row[]): number {
  const shared = Math.max(0, ...rows.map(sharedOf));
  return rows.reduce((sum, row) => sum + row.ids.length - sharedOf(row), shared);
}
