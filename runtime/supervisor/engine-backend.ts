import type { Logger } from 'pino';
import { at } from '../../lib/at.ts';
import type {
  BatchAnswer,
  Call,
  ChatEvent,
  ChatRequest,
  InferenceBackend,
  Metrics,
  ModelStatus,
  TaskAnswer,
  TaskBatch,
  Usage,
} from '../../lib/backend.ts';
import { automated, calibrated } from '../../lib/calibration/calibrated.ts';
import type { Calibration } from '../../lib/calibration/calibration.ts';
import { AssayError, type ErrorCode } from '../../lib/errors.ts';
import { answerTokens, checkFits, checkRequestSize, sizeOfRequest } from '../../lib/limits/request-size.ts';
import { asModelId, type ModelId } from '../../lib/model-id.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { noModelLoaded, unknownModel } from '../../lib/models/unknown-model.ts';
import type { TraceContext } from '../../lib/trace-context.ts';
import { type ModelInfo, type Reply, requestOf, type Work } from '../protocol/messages.ts';
import type { CallMedia, EngineCall } from './calls/call.ts';
import { chooseModel } from './choose-model.ts';
import type { ImageFetcher } from './media/fetch-image.ts';
import type { MediaProcess } from './media/media-process.ts';
import { hasMedia, openMedia, withoutFiles } from './media/open-media.ts';
import type { EngineMetrics } from './metrics.ts';
import { HOW_TO_LOAD, type Supervisor } from './supervisor.ts';

/** Represents a model in memory. */
export interface AnsweringModel {
  readonly model: ModelId;
  /** Facts about the model; null while its process is started again for the first time. */
  readonly info: ModelInfo | null;
  readonly engine: Pick<Supervisor, 'call'>;
  /** Notes that a request begins or has ended, and how long it wants the model kept (milliseconds). */
  used(keepAliveMs?: number): void;
}

/** Holds the models that answer requests. */
export interface LoadedModels extends Pick<ModelHost, 'listModels'> {
  /** Returns the models in memory, also those whose process is being started again; first the one loaded last. */
  loadedModels(): readonly AnsweringModel[];
  /**
   * Loads a model of this machine because a request needs it; undefined: the one that was in memory last. Absent, or
   * without effect, unless models are loaded on demand. Throws `overloaded` if another model is being loaded so.
   */
  demand?: ((model: ModelId | undefined) => Promise<void>) | undefined;
  /** Returns the calibration of a loaded model, or null if it has none. */
  calibration?(model: ModelId): Promise<{ calibration: Calibration } | null>;
}

export interface EngineBackendOptions {
  models: LoadedModels;
  /** Process that decodes images and audio; absent: the backend reads none. */
  media?: Pick<MediaProcess, 'size' | 'samples' | 'prepare'>;
  /** Fetches images from the hosts that the operator allows; absent: image addresses are refused. */
  fetcher?: ImageFetcher | undefined;
  metrics: Pick<EngineMetrics, 'answered' | 'failed' | 'media' | 'decided'>;
  /** Called with the usage and metrics of each request that was answered. */
  onAnswered?: ((answered: Answered) => void) | undefined;
  log: Logger;
  /** Timeout in milliseconds of a request's checks, and again of its wait in the queue and its answer. */
  timeoutMs: number;
  /** Maximum answer tokens of a chat request that sets no limit. A small model may never stop by itself. */
  chatMaxTokens: number;
  /**
   * Number of orders in which each question shows its options, if a request asks for probabilities but sets no
   * `orders`. The log-probabilities are averaged over the orders. Absent: 1.
   */
  orders?: number;
  /** True to count the confidence of answers by the names of their questions. */
  keepsQuestions?: boolean;
  /** True to log prompts and answers, which may be private. */
  logPrompts: boolean;
}

/** Describes a request that was answered; `trace` is absent if it belongs to no distributed trace. */
export interface Answered {
  trace?: TraceContext;
  model: ModelId;
  usage: Usage;
  metrics: Metrics;
}

/** Statuses of a model that will be ready after a while. */
const PENDING_STATUSES: ReadonlySet<ModelStatus> = new Set(['loading', 'compiling', 'downloading']);

/** Error codes that operators must see in the log; all others tell the caller what to change. */
const INTERNAL_ERRORS: ReadonlySet<ErrorCode> = new Set(['engine_failed', 'timeout', 'internal_error']);

/** Returns the error for a request to a model that will be ready after a while. */
function notReady(id: ModelId, status: ModelStatus): AssayError {
  const message = `The model ${id} is not ready yet (${status}). Try again in a moment.`;
  return new AssayError('model_not_loaded', message, { param: 'model' });
}

type Finished = Extract<Reply, { type: 'finished' }>;

/** Creates an inference backend that answers with the engine process. */
export function createEngineBackend(options: EngineBackendOptions): InferenceBackend {
  const { models } = options;

  /**
   * Returns the model that answers a request: the one it names, or that of `chooseModel` among those that the caller
   * may use. Throws `model_not_loaded` if that is not loaded but on this machine, or if none is loaded, and otherwise
   * `model_not_found` (D-20, M-13).
   */
  async function answering(work: Work, context: Call): Promise<AnsweringModel> {
    const wanted = requestOf(work).model;
    const { allows = () => true } = context;
    const found = () => {
      const loaded = models.loadedModels();
      if (wanted !== undefined) return loaded.find(({ model }) => model === wanted);
      const allowed = loaded.filter(({ model }) => allows(model));
      // If the key allows none, the refusal names the model that would have answered.
      return chooseModel(work, allowed.length > 0 ? allowed : loaded);
    };
    const loaded = found();
    if (loaded) return loaded;
    const all = await models.listModels();
    const id = wanted === undefined ? undefined : asModelId(wanted);
    const listed = all.find((one) => one.id === id);
    if (models.demand && (listed || wanted === undefined)) {
      await models.demand(listed?.id);
      const demanded = found();
      if (demanded) return demanded;
    }
    const pending = wanted === undefined ? all.find(({ status }) => status === 'loading') : listed;
    if (pending && PENDING_STATUSES.has(pending.status)) throw notReady(pending.id, pending.status);
    if (wanted === undefined) throw noModelLoaded(HOW_TO_LOAD);
    if (listed) {
      const message = `The model ${id} is not loaded. Load it with POST /load or "assay load ${id}".`;
      throw new AssayError('model_not_loaded', message, { param: 'model' });
    }
    const served = models.loadedModels().map(({ model }) => model);
    throw unknownModel(wanted, { served, known: all.map((one) => one.id) });
  }

  /** Runs one request in the documented order of checks (D-15) and yields its model with the engine's replies. */
  async function* answer(work: Work, context: Call): AsyncGenerator<{ model: ModelId; reply: Reply }, void> {
    const traceId = context.trace?.traceId;
    const log = options.log.child({ requestId: context.requestId, ...(traceId ? { traceId } : {}), kind: work.kind });
    let call: EngineCall | null = null;
    let target: AnsweringModel | null = null;
    const arrivedAt = performance.now();
    try {
      target = await answering(work, context);
      target.used();
      const { model, engine, info } = target;
      if (options.logPrompts) log.info({ model, work: withoutFiles(work) }, 'asked');
      const request = requestOf(work);
      await context.admit(sizeOfRequest(request).tokens, model);
      if (work.kind === 'tasks') checkRequestSize(work.batch);
      // Other models may read a part of a long text, or all of it in windows.
      if (info && !info.capabilities) checkFits(request, info.maxPromptLen);
      const { signal, priority, caller, cacheScope } = context;
      const media = mediaFor(work, caller, info);
      call = await engine.call({
        work,
        signal,
        timeoutMs: options.timeoutMs,
        caller: { ...(caller === undefined ? {} : { caller }), ...(cacheScope === undefined ? {} : { cacheScope }) },
        ...(priority ? { priority } : {}),
        ...(media ? { media } : {}),
      });
      const promptTokens = await call.prepare();
      await context.recount?.(promptTokens + answerTokens(request));
      const waitedMs = performance.now() - arrivedAt;
      for await (const said of call.run()) {
        const reply = said.type === 'finished' ? { ...said, metrics: fromArrival(said.metrics, waitedMs) } : said;
        if (options.logPrompts) log.info({ reply }, 'said');
        if (reply.type === 'finished') {
          finished(log, work, model, reply);
          const { usage, metrics } = reply;
          await context.recount?.(usage.promptTokens + usage.completionTokens);
          options.onAnswered?.({ model, usage, metrics, ...(context.trace ? { trace: context.trace } : {}) });
        }
        yield { model, reply };
      }
    } catch (error) {
      call?.cancel();
      const code = error instanceof AssayError ? error.code : 'internal_error';
      if (code === 'overloaded') await context.recount?.(0);
      if (context.signal.aborted) log.info('caller left');
      else if (INTERNAL_ERRORS.has(code)) log.warn({ code, err: error }, 'not answered');
      else log.info({ code }, 'not answered');
      options.metrics.failed(work.kind, context.signal.aborted ? 'caller_left' : code, target?.model);
      throw error;
    } finally {
      target?.used(models.demand && context.keepAliveMs);
    }
  }

  /**
   * Returns the functions that open and decode the media of a request; null if the request has none of the kind that
   * the model reads (the engine refuses other media), or if there is no media process.
   */
  function mediaFor(work: Work, caller: string | undefined, info: ModelInfo | null): CallMedia | null {
    const { reads: kind, mostSamples } = info ?? {};
    if (!options.media || !kind || !hasMedia(work, kind)) return null;
    const { metrics, fetcher } = options;
    return openMedia(options.media, { kind, counts: metrics.media[kind], fetcher, caller, mostSamples });
  }

  /** Returns the answers, calibrated if the request asks for it and the loaded model has a calibration. */
  async function calibratedAnswers(
    model: ModelId,
    batch: TaskBatch,
    answers: readonly TaskAnswer[],
  ): Promise<readonly TaskAnswer[]> {
    const { calibrated: wanted = false, maxError } = batch.probabilities ?? {};
    if (!wanted && maxError === undefined) return answers;
    const { calibration } = (await models.calibration?.(model)) ?? {};
    return answers.map((one, i) => {
      const task = at(batch.tasks, i);
      const scaled = wanted && calibration ? calibrated(one, task, calibration) : one;
      return automated(scaled, task, batch, calibration?.thresholds);
    });
  }

  /** Counts the probability of the likeliest option of each question that has a name. */
  function countConfidence(model: ModelId, { tasks }: TaskBatch, answers: readonly TaskAnswer[]): void {
    for (const [i, { optionLogprobs }] of answers.entries()) {
      const task = at(tasks, i);
      if (task.type !== 'decide' || task.id === undefined || !optionLogprobs) continue;
      options.metrics.decided(task.id, model, Math.exp(Math.max(...optionLogprobs)));
    }
  }

  function finished(log: Logger, work: Work, model: ModelId, { usage, metrics, reason, media }: Finished): void {
    options.metrics.answered(work.kind, model, usage, metrics);
    if (media) options.metrics.media[media.kind].encoded(media);
    const tasks = work.kind === 'tasks' ? { tasks: work.batch.tasks.length } : {};
    log.info({ model, ...tasks, reason, ...metrics }, 'answered');
  }

  return {
    listModels: () => models.listModels(),

    async runTasks(asked: TaskBatch, call: Call): Promise<BatchAnswer> {
      const batch = withOrders(asked, options.orders ?? 1);
      let answered: { answers: readonly TaskAnswer[]; cut: readonly string[] } = { answers: [], cut: [] };
      for await (const { model, reply } of answer({ kind: 'tasks', batch }, call)) {
        if (reply.type === 'answers') answered = reply;
        if (reply.type === 'finished') {
          const { cut } = answered;
          const answers = await calibratedAnswers(model, batch, answered.answers);
          if (options.keepsQuestions) countConfidence(model, batch, answers);
          return {
            model,
            answers,
            finishReason: reply.reason === 'repetition' ? 'length' : reply.reason,
            ...(cut.length > 0 ? { cut: { names: cut, more: 0 } } : {}),
            usage: reply.usage,
            ...(batch.probabilities ? { cachedTokens: reply.metrics.cached_tokens ?? 0 } : {}),
          };
        }
      }
      throw new AssayError('internal_error', 'The engine ended without an answer. Search the log for the request id.');
    },

    async *chat(asked: ChatRequest, call: Call): AsyncGenerator<ChatEvent> {
      const request = { maxTokens: options.chatMaxTokens, ...asked };
      for await (const { model, reply } of answer({ kind: 'chat', request }, call)) {
        switch (reply.type) {
          case 'queued':
            yield { type: 'start', model };
            break;
          case 'reasoning':
            yield { type: 'reasoning', text: reply.text };
            break;
          case 'content':
            yield { type: 'content', text: reply.text, ...(reply.logprobs ? { logprobs: reply.logprobs } : {}) };
            break;
          case 'tool_call': {
            const { id: _, ...call } = reply;
            yield call;
            break;
          }
          case 'finished':
            yield { type: 'finish', reason: reply.reason, usage: reply.usage, metrics: reply.metrics };
            break;
          default:
        }
      }
    },
  };
}

/** Returns the metrics of the engine, which begins to count when it queues a request, as counted from its arrival. */
function fromArrival(metrics: Metrics, waitedMs: number): Metrics {
  const later = (ms: number | null) => (ms === null ? null : ms + waitedMs);
  const { queue_ms, time_to_first_token_ms, total_ms } = metrics;
  return {
    ...metrics,
    queue_ms: later(queue_ms),
    time_to_first_token_ms: later(time_to_first_token_ms),
    total_ms: later(total_ms),
  };
}

/** Returns the batch with `orders` set, if it asks for probabilities and does not set `orders` itself. */
function withOrders(batch: TaskBatch, orders: number): TaskBatch {
  return batch.probabilities ? { ...batch, probabilities: { orders, ...batch.probabilities } } : batch;
}
