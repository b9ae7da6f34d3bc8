import { at } from '../../lib/at.ts';
import type { DecideTask, ExtractTask, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { COUNTED_LIMITS, checkRequestShare } from '../../lib/limits/request-size.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import { textOrJson } from '../contracts/python-json.ts';
import {
  type Asked,
  answerOf,
  checkState,
  inOrders,
  MOST_CHARACTERS,
  type QuestionState,
  questionOf,
  stateOf,
} from '../contracts/question.ts';
import {
  type Adapter,
  type EncoderRow,
  type Planned,
  type PlannedAnswer,
  type PlanOptions,
  type RunHead,
  tooLong,
} from '../encoder/adapter.ts';
import type { EncoderGraphs } from '../encoder/encoder-graphs.ts';
import { type RowResult, RowScheduler } from '../encoder/row-scheduler.ts';
import { type EngineLoad, NO_LOAD, type Work } from '../protocol/messages.ts';
import { figuresOf } from './loaded-model.ts';
import type { Caller, PreparedWork, ServedModel } from './serve.ts';

export interface EncoderModelParts {
  model: ModelId;
  contract: ModelContract;
  adapter: Adapter;
  graphs: EncoderGraphs;
  /** Most tokens of a row. */
  maxPromptLen: number;
  /** True to read long texts in windows, if the family defines that. */
  windows: boolean;
}

/** Windows in which a long text is read, at most. */
const MOST_WINDOWS = 64;

/** Reason why an answer may depend on what runs beside it. */
const PADDED =
  'rows that run together are padded to one length, which changes the order in which attention adds numbers';

/** Answers requests with an encoder model: writes each task as rows, and reads its answer from their outputs. */
export class EncoderModel implements ServedModel {
  readonly info: ServedModel['info'];
  readonly #adapter: Adapter;
  readonly #graphs: EncoderGraphs;
  readonly #scheduler: RowScheduler;
  readonly #windows: boolean;

  constructor({ model, contract, adapter, graphs, maxPromptLen, windows }: EncoderModelParts) {
    const tokens = Math.min(adapter.capabilities.max_tokens, maxPromptLen);
    this.info = {
      model,
      device: 'CPU',
      maxPromptLen: tokens,
      contextLength: tokens,
      capabilities: { ...adapter.capabilities, max_tokens: tokens },
      contract,
      dependence: adapter.dependence ?? (graphs.alone ? null : PADDED),
    };
    this.#adapter = adapter;
    this.#graphs = graphs;
    this.#scheduler = new RowScheduler(graphs);
    this.#windows = windows;
  }

  load(): EngineLoad {
    const { running, waiting } = this.#scheduler;
    return { ...NO_LOAD, running, waiting };
  }

  *prepare(work: Work, { caller = '' }: Caller): Generator<void, PreparedWork> {
    if (work.kind === 'chat') {
      const message =
        'This model answers questions with options and does not chat. Ask it at /v1/systemone, /v1/decisions or /v1/tasks, or load a chat model.';
      throw new AssayError('unsupported_parameter', message, { param: 'model' });
    }
    const plans = yield* this.#plan(work.batch);
    const rows = plans.flatMap(({ planned }) => planned.flatMap((plan) => plan.rows));
    const promptTokens = tokensOf(rows);
    return {
      promptTokens,
      run: async ({ reply, signal, priority }, timeoutMs) => {
        const startedAt = performance.now();
        const submitted = this.#scheduler.submit({
          rows,
          caller,
          signal,
          deadline: startedAt + timeoutMs,
          priority,
        });
        reply({ type: 'queued' });
        const result = await submitted;
        const answers = await this.#answers(plans, result, signal);
        reply({ type: 'answers', answers, cut: [] });
        const { queueMs, runMs: promptMs } = result;
        const counts = { branches: [], promptTokens, cachedTokens: 0, queueMs, promptMs, generationMs: 0 };
        const measured = { result: counts, firstTokenMs: null, totalMs: performance.now() - startedAt };
        reply({ type: 'finished', reason: 'stop', ...figuresOf(measured, { promptTokens, device: 'CPU' }) });
      },
    };
  }

  /** Plans the tasks of a batch: questions one by one or together, as the adapter does, and each extraction. */
  *#plan(batch: TaskBatch): Generator<void, TaskPlan[]> {
    const options = { calibrated: batch.probabilities?.calibrated ?? true, windows: this.#windows };
    checkState(batch, COUNTED_LIMITS * this.#mostTokens);
    const state = stateOf(batch, this.#adapter.readsMessages === true);
    this.#checkSize(state);
    const { max_options: most } = this.#adapter.capabilities;
    const limits = this.#adapter.limits ?? { options: most, levels: most };
    const asked: (Asked & { name: string })[] = [];
    for (const task of batch.tasks) {
      if (task.type === 'extract') continue;
      const question = questionOf(task, this.info.contract?.name ?? '', limits);
      for (const one of inOrders(task, question, batch)) asked.push({ ...one, name: task.name });
      yield;
    }
    const decided: Planned[] = [];
    const counted = new Set<EncoderRow>();
    let tokens = 0;
    const count = (planned: readonly Planned[], done: number, all: number): void => {
      for (const row of planned.flatMap(({ rows }) => rows)) {
        // The model reads the text again in each row.
        if (!counted.has(row)) tokens += row.ids.length;
        counted.add(row);
      }
      checkRequestShare(tokens, done, all);
    };
    const questions = asked.map(({ question }) => question);
    yield* this.#adapter.decide(questions, state.value, options, (plan) => {
      decided.push(plan);
      count([plan], decided.length, asked.length);
    });
    const plans: TaskPlan[] = [];
    for (const task of batch.tasks) {
      const plan =
        task.type === 'decide'
          ? this.#decision(task, asked, decided, batch)
          : yield* this.#extraction(task, state, options, batch);
      plans.push(plan);
      count(plan.planned, plans.length, batch.tasks.length);
      yield;
    }
    for (const { planned } of plans) for (const { rows } of planned) for (const row of rows) this.#checkRow(row);
    return plans;
  }

  #decision(
    task: DecideTask,
    asked: readonly (Asked & { name: string })[],
    decided: readonly Planned[],
    batch: TaskBatch,
  ): TaskPlan {
    const confidence = this.#adapter.confidence?.[task.kind ?? 'choice'];
    const own = asked.flatMap((one, i) => (one.name === task.name ? [{ ...one, plan: at(decided, i) }] : []));
    return {
      planned: own.map(({ plan }) => plan),
      read(answers) {
        const read = answers.map((answer, i) => ({
          order: at(own, i).order,
          logprobs: 'logprobs' in answer ? answer.logprobs : [],
        }));
        const abstained = answers.every((answer) => 'abstained' in answer && answer.abstained === true);
        const known = { ...(abstained ? { abstained } : {}), ...(confidence ? { confidence } : {}) };
        return answerOf(task, read, batch, known);
      },
    };
  }

  *#extraction(
    task: ExtractTask,
    { value, text }: QuestionState,
    options: PlanOptions,
    batch: TaskBatch,
  ): Generator<void, TaskPlan> {
    if (!this.#adapter.extract) {
      const message = 'This model answers questions with options and extracts nothing. Load another model.';
      throw new AssayError('unsupported_parameter', message, { param: 'model' });
    }
    const planned = [yield* this.#adapter.extract(task, textOrJson(value), options)];
    return { planned, read: ([answer]) => extraction(task.name, answer, text !== null, batch) };
  }

  /** Most tokens of a text that is read. */
  get #mostTokens(): number {
    return this.info.maxPromptLen * (this.#windows ? MOST_WINDOWS : 1);
  }

  #checkSize({ value }: QuestionState): void {
    const { maxPromptLen } = this.info;
    const characters = textOrJson(value).length;
    if (characters > this.#mostTokens * MOST_CHARACTERS)
      throw tooLong(Math.ceil(characters / MOST_CHARACTERS), maxPromptLen);
  }

  #checkRow({ ids }: EncoderRow): void {
    if (ids.length > this.info.maxPromptLen) throw tooLong(ids.length, this.info.maxPromptLen);
  }

  async #answers(plans: readonly TaskPlan[], { outputs }: RowResult, signal: AbortSignal): Promise<TaskAnswer[]> {
    const head: RunHead = (...given) => {
      signal.throwIfAborted();
      return this.#graphs.head(...given);
    };
    const answers: TaskAnswer[] = [];
    let next = 0;
    for (const { planned, read } of plans) {
      const parts: PlannedAnswer[] = [];
      for (const { rows, read: readRows } of planned) {
        const own = outputs.slice(next, next + rows.length);
        next += rows.length;
        parts.push(await readRows(own, head));
      }
      answers.push(read(parts));
    }
    return answers;
  }
}

interface TaskPlan {
  planned: readonly Planned[];
  /** Combines the answers of the plans. */
  read(answers: readonly PlannedAnswer[]): TaskAnswer;
}

/** Returns the answer to an extraction; places of its values only if they are places in the client's text. */
function extraction(
  name: string,
  answer: PlannedAnswer | undefined,
  placed: boolean,
  { probabilities }: TaskBatch,
): TaskAnswer {
  const { json, fields = [] } = answer && 'extracted' in answer ? answer.extracted : { json: '{}' };
  if (!probabilities) return { name, json };
  return { name, json, fields: placed ? fields : fields.map(({ path, probability }) => ({ path, probability })) };
}

/** Returns the number of prompt tokens: those of the text once, and each row's own (D-27). */
function tokensOf(rows: readonly EncoderRow[]): number {
  const different = [...new Set(rows)];
  const shared = Math.max(0, ...different.map((row) => row.shared));
  return different.reduce((sum, row) => sum + row.ids.length - row.shared, shared);
}
