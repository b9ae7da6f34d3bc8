import { at } from '../../lib/at.ts';
import type { DecideTask, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { READ_IN_WINDOWS } from '../../lib/request-size.ts';
import { asListed, type DecisionContract, type OpenContract, type Reading, type Row } from '../contracts/contract.ts';
import { type Asked, answerOf, inOrders, questionOf, stateOf } from '../contracts/question.ts';
import type { BranchResult, BranchSpec, JobResult, Sampling } from '../engine/job-spec.ts';
import { checkLength } from '../text/prompt.ts';
import type { JobPlan } from './task-job.ts';

/** Holds a decision model's contract, bound to its tokenizer, and how its graph reads labels. */
export interface LoadedContract {
  contract: DecisionContract;
  open: OpenContract;
  /** True if the model has one output for each label of the contract; false if its outputs are the whole vocabulary. */
  narrow: boolean;
  /**
   * True to read one row at a time behind the shared tokens, so that a question has the same answer, bit for bit, alone
   * and among others. Packed rows are faster, and equal up to rounding.
   */
  rowByRow: boolean;
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

  const first = jobOf(asked, loaded);
  return {
    promptTokens: first ? tokensOf(first.plan) : 0,
    async answers(run) {
      let promptTokens = 0;
      for (let job = first; job; job = jobOf(asked, loaded)) {
        promptTokens += tokensOf(job.plan);
        const branches: BranchResult[] = [];
        for (const plan of loaded.rowByRow ? apart(job.plan) : [job.plan]) branches.push(...(await run(plan)).branches);
        let next = 0;
        for (const one of job.asked) {
          proceed(
            one,
            one.rows.map((row) => logitsOf(row, at(branches, next++).rows ?? [], open)),
          );
        }
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

/** Returns the job of all rows that are to be read next; null if there are none. */
function jobOf(asked: readonly Reader[], { open, narrow }: LoadedContract): { plan: JobPlan; asked: Reader[] } | null {
  const open_ = asked.filter(({ rows }) => rows.length > 0);
  const rows = open_.flatMap((one) => one.rows);
  const [first] = rows;
  if (!first) return null;
  // All rows begin with the same state; each keeps at least one token of its own.
  const shared = Math.min(...rows.map((row) => Math.min(row.shared, row.ids.length - 1)));
  const branches = rows.map((row) => branchOf(row, shared, narrow ? null : open.labels));
  return { plan: { prefix: first.ids.slice(0, shared), branches, budget: 0 }, asked: open_ };
}

/** Returns a job for each branch of a job, which begin with the same tokens. */
function apart(plan: JobPlan): JobPlan[] {
  return plan.branches.map((branch) => ({ ...plan, branches: [branch], prefixApart: true }));
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

function tokensOf({ prefix, branches }: JobPlan): number {
  return branches.reduce((sum, { suffix }) => sum + suffix.length, prefix.length);
}
