import { setImmediate, setTimeout } from 'node:timers/promises';
import type { ChatRequest, Device, Metrics, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { decidesOnly } from '../contracts/contract.ts';
import type { Engine } from '../engine/engine.ts';
import type { JobResult, JobSpec } from '../engine/job-spec.ts';
import type { CallerFields, EngineLoad, MediaFigures, PreparedMedia, Work } from '../protocol/messages.ts';
import type { OutputDelta } from '../text/output/chat-output.ts';
import type { TextModel } from '../text/text-model.ts';
import { planChat } from './chat-job.ts';
import { featuresOf, type MediaEncoder, type MediaItem } from './media-encoder.ts';
import type { Caller, PreparedWork, ServedModel, WorkChannel } from './serve.ts';
import { type JobPlan, type LoadedContract, planTasks } from './task-job.ts';

export interface LoadedModelParts {
  model: ModelId;
  device: Device;
  maxPromptLen: number;
  contextLength: number;
  text: TextModel;
  engine: Engine;
  /** Reason why an answer may depend on what runs beside it; null if it does not. */
  dependence: string | null;
  loaded: LoadedContract;
  /** Encoder of images or audio; absent if the model reads only text. */
  media?: MediaEncoder | undefined;
}

/** Returns the caller of a job and the scope of its cached prefixes, which a request may narrow with a salt. */
function jobCaller(
  { caller = '', cacheScope = '' }: CallerFields,
  { cacheSalt = '' }: TaskBatch | ChatRequest,
): Pick<JobSpec, 'caller' | 'cacheScope'> {
  return { caller, cacheScope: JSON.stringify([cacheScope, cacheSalt]) };
}

function longest(media: MediaEncoder, maxPromptLen: number): { mostSamples?: number } {
  const mostSamples = media.mostSamples(maxPromptLen);
  return mostSamples === undefined ? {} : { mostSamples };
}

/**
 * Milliseconds for which batch jobs wait for an interactive request after its text was read, and for the next one after
 * an answer: the server lets a request run within about one, and many clients ask again at once. A run of the model
 * that began meanwhile would keep it waiting for far longer.
 */
const EXPECTED_MS = 10;
/**
 * Milliseconds for which the jobs of other callers wait while the text of a caller that has no job is read, and after
 * that: about as long as a run of theirs, which would keep it waiting so long.
 */
const COMING_MS = 25;
/**
 * Milliseconds after a refused request during which runs do not wait for its caller's text. Otherwise, a caller whose
 * requests are all refused would delay every run of the others.
 */
const REFUSED_MS = 1000;

type MeasuredWork = Measured & { media?: MediaFigures };

/** Answers requests with a loaded model: turns them into engine jobs, and their results into replies. */
export class LoadedModel implements ServedModel {
  readonly info: ServedModel['info'];
  readonly #text: TextModel;
  readonly #engine: Engine;
  readonly #loaded: LoadedContract;
  readonly #media: MediaEncoder | undefined;
  /** Media encoding tasks that wait until the engine is between two steps. */
  readonly #between: (() => Promise<void>)[] = [];
  #nextJob = 0;
  #stepping = false;
  /** Time until which an interactive request is expected to run. */
  #expectedUntil = 0;
  /** Interactive requests that were received and do not run yet, with the time until which they are expected to. */
  readonly #coming = new Set<{ caller: string; until: number }>();
  /** For each caller with a refused request, the time until which runs do not wait for its text. */
  readonly #refused = new Map<string, number>();

  constructor({ text, engine, loaded, media, ...info }: LoadedModelParts) {
    this.info = {
      ...info,
      ...(media ? { reads: media.kind, ...longest(media, info.maxPromptLen) } : {}),
      ...(loaded.contract.writes
        ? {}
        : { capabilities: decidesOnly(info.maxPromptLen, loaded.contract.limits.options) }),
      contract: loaded.contract.info,
    };
    this.#loaded = loaded;
    this.#text = text;
    this.#media = media;
    this.#engine = engine;
  }

  load(): EngineLoad {
    const { running, queued: waiting, kvCells, saveFailures } = this.#engine;
    return { running, waiting, kvCells, saveFailures };
  }

  prepare(work: Work, caller: Caller): Generator<void, PreparedWork> {
    const coming = { caller: caller.caller ?? '', until: performance.now() + COMING_MS };
    if (caller.priority !== 'batch') this.#coming.add(coming);
    return this.#prepareExpected(work, caller, coming);
  }

  *#prepareExpected(
    work: Work,
    caller: Caller,
    coming: { caller: string; until: number },
  ): Generator<void, PreparedWork> {
    this.#expect(caller);
    try {
      const prepared = yield* this.#prepare(work, caller);
      this.#expect(caller);
      coming.until = performance.now() + COMING_MS;
      return {
        ...prepared,
        run: (channel, ...rest) => {
          coming.until = 0;
          return prepared.run(channel, ...rest);
        },
      };
    } catch (error) {
      coming.until = 0;
      this.#refused.set(coming.caller, performance.now() + REFUSED_MS);
      throw error;
    }
  }

  /** Tells whether the next step should wait: a request that comes would have to wait for its run. */
  #waitsAt(now: number): boolean {
    for (const one of this.#coming) if (one.until <= now) this.#coming.delete(one);
    for (const [caller, until] of this.#refused) if (until <= now) this.#refused.delete(caller);
    if (this.#engine.onlyBatch && now < this.#expectedUntil) return true;
    return [...this.#coming].some(({ caller }) => !this.#refused.has(caller) && !this.#engine.serves(caller));
  }

  #expect({ priority }: Pick<Caller, 'priority'>): void {
    if (priority !== 'batch') this.#expectedUntil = performance.now() + EXPECTED_MS;
  }

  *#prepare(work: Work, caller: Caller): Generator<void, PreparedWork> {
    const media = this.#media?.of(work) ?? [];
    if (work.kind === 'tasks') return yield* this.#prepareTasks(work.batch, media, caller);
    const { contract } = this.#loaded;
    if (contract.writes) return yield* this.#prepareChat(work.request, media, caller);
    const message = `${contract.info.name} models write no text: they answer questions with options (POST /v1/systemone, /v1/decisions). Load a chat model for this.`;
    throw new AssayError('unsupported_parameter', message, { param: 'model' });
  }

  *#prepareTasks(batch: TaskBatch, media: readonly MediaItem[], caller: CallerFields): Generator<void, PreparedWork> {
    const { promptTokens, answers } = yield* planTasks(this.#loaded, batch, this.info);
    return {
      promptTokens,
      wanted: this.#media?.wanted(media) ?? [],
      run: async (channel, timeoutMs, prepared) => {
        const jobs: MeasuredWork[] = [];
        const deadline = performance.now() + timeoutMs;
        const { usage, ...answered } = await answers(async (plan) => {
          const work = { plan: { ...plan, ...jobCaller(caller, batch) }, media, prepared };
          const measured = await this.#run(work, channel, deadline - performance.now(), jobs.length === 0);
          jobs.push(measured);
          return measured.result;
        });
        channel.reply({ type: 'answers', ...answered });
        const reason = answered.cut.length > 0 ? 'length' : 'stop';
        const figures = this.#figures(together(jobs), usage.promptTokens);
        channel.reply({ type: 'finished', reason, ...figures, usage: { ...figures.usage, ...usage } });
      },
    };
  }

  *#prepareChat(
    request: ChatRequest,
    media: readonly MediaItem[],
    caller: CallerFields,
  ): Generator<void, PreparedWork> {
    const { promptTokens, plan, end } = yield* planChat(this.#text, request, this.info);
    return {
      promptTokens,
      wanted: this.#media?.wanted(media) ?? [],
      run: async (channel, timeoutMs, prepared) => {
        const onDelta = ({ reasoning, content, logprobs, calls = [] }: OutputDelta) => {
          if (reasoning !== '') channel.reply({ type: 'reasoning', text: reasoning });
          if (content !== '' || logprobs.length > 0) {
            channel.reply({ type: 'content', text: content, ...(logprobs.length > 0 ? { logprobs } : {}) });
          }
          for (const call of calls) channel.reply(call);
        };
        const work = { plan: { ...plan(onDelta), ...jobCaller(caller, request) }, media, prepared };
        const measured = await this.#run(work, channel, timeoutMs);
        const { delta, reason } = end(measured.result);
        onDelta(delta);
        channel.reply({ type: 'finished', reason, ...this.#figures(measured, promptTokens) });
      },
    };
  }

  #figures({ media, ...measured }: MeasuredWork, promptTokens: number) {
    const figures = figuresOf(measured, { promptTokens, device: this.info.device });
    return { ...figures, ...(media ? { media } : {}) };
  }

  /** Encodes the media of a job, runs the job, and measures both. */
  async #run(
    { plan, media, prepared }: { plan: JobPlan; media: readonly MediaItem[]; prepared: readonly PreparedMedia[] },
    { reply, signal, priority }: WorkChannel,
    timeoutMs: number,
    announce = true,
  ): Promise<MeasuredWork> {
    const startedAt = performance.now();
    const figures = await this.#encode(media, prepared, signal);
    let firstTokenMs: number | null = null;
    const job: JobSpec = {
      ...plan,
      ...(figures ? { media: featuresOf(media) } : {}),
      ...(priority ? { priority } : {}),
      id: String(this.#nextJob++),
      deadline: startedAt + timeoutMs,
      onToken: (branch, token) => {
        firstTokenMs ??= performance.now() - startedAt;
        return plan.onToken?.(branch, token);
      },
    };
    await this.#engine.restore(job);
    const submitted = this.#engine.submit(job, signal);
    void this.#stepWhileBusy();
    // Throws here if the engine refuses the job at once: a refused job must not report `queued`.
    await Promise.race([submitted, null]);
    if (announce) reply({ type: 'queued' });
    const result = await submitted;
    this.#expect({ priority });
    const measured = { result, firstTokenMs, totalMs: performance.now() - startedAt };
    return figures ? { ...measured, media: figures } : measured;
  }

  async #encode(
    media: readonly MediaItem[],
    prepared: readonly PreparedMedia[],
    signal: AbortSignal,
  ): Promise<MediaFigures | null> {
    if (!this.#media || media.length === 0) return null;
    const before = performance.now();
    const encoded = await this.#media.encode(media, prepared, {
      between: (work) => this.#betweenSteps(work),
      signal,
    });
    const encodeMs = encoded > 0 ? performance.now() - before : 0;
    return { kind: this.#media.kind, encoded, cached: media.length - encoded, encodeMs };
  }

  /** Runs a task while the engine is not in a step, because both use all cores. Resolves with the task's result. */
  #betweenSteps<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      void this.#stepWhileBusy();
    });
  }

  /**
   * Steps the engine while it has work, and lets the process read messages between steps. A step that throws ends the
   * process, and the server starts a new one.
   */
  async #stepWhileBusy(): Promise<void> {
    if (this.#stepping) return;
    this.#stepping = true;
    for (let steppedAt = performance.now(); ; steppedAt = performance.now()) {
      // At most so long after each step: requests that come all the time do not stop batch jobs.
      const now = () => performance.now();
      while (now() < steppedAt + COMING_MS && this.#waitsAt(now())) await setTimeout(1);
      const work = this.#between.shift();
      await work?.();
      const stepped = await this.#engine.step();
      if (!work && !stepped && this.#between.length === 0) break;
      await setImmediate();
    }
    this.#stepping = false;
  }
}

/** Cached tokens are reported in multiples of this number, so they do not tell exactly where two texts differ. */
const CACHE_BLOCK = 16;

/** Holds the result of a finished job, with times that the engine does not measure. */
interface Measured {
  result: JobResult;
  /**
   * Milliseconds from the request to run the job, before its media are encoded, to the first token that
   * `JobSpec.onToken` received; null if it received none, as when only options were scored.
   */
  firstTokenMs: number | null;
  /** Milliseconds from the same time to the end of the answer. */
  totalMs: number;
}

/** Adds up the times and counts of the jobs that answered one request, one after another. */
function together(jobs: readonly MeasuredWork[]): MeasuredWork {
  const sum = (of: (job: Measured) => number) => jobs.reduce((total, job) => total + of(job), 0);
  const [first] = jobs;
  return {
    ...(first?.media ? { media: first.media } : {}),
    result: {
      branches: jobs.flatMap(({ result }) => result.branches),
      promptTokens: sum(({ result }) => result.promptTokens),
      cachedTokens: sum(({ result }) => result.cachedTokens),
      queueMs: sum(({ result }) => result.queueMs),
      promptMs: sum(({ result }) => result.promptMs),
      generationMs: sum(({ result }) => result.generationMs),
    },
    firstTokenMs: first?.firstTokenMs ?? null,
    totalMs: sum(({ totalMs }) => totalMs),
  };
}

/**
 * Returns the usage and the metrics of an answer, as the API reports them. Times are in milliseconds with three
 * decimals.
 */
export function figuresOf(
  { result, firstTokenMs, totalMs }: Measured,
  { promptTokens, device }: { promptTokens: number; device: Metrics['device'] },
) {
  const completionTokens = result.branches.reduce((sum, { chosen }) => sum + chosen, 0);
  const { queueMs, promptMs, generationMs } = result;
  const cachedTokens = result.cachedTokens - (result.cachedTokens % CACHE_BLOCK);
  const firstMs = firstTokenMs ?? (completionTokens > 0 ? queueMs + promptMs : null);
  const perSecond = (tokens: number, ms: number) => (tokens > 0 && ms > 0 ? rounded((tokens / ms) * 1000) : null);
  const metrics: Metrics = {
    queue_ms: rounded(queueMs),
    prompt_ms: rounded(promptMs),
    time_to_first_token_ms: firstMs === null ? null : rounded(firstMs),
    generation_ms: rounded(generationMs),
    total_ms: rounded(totalMs),
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    prompt_tokens_per_second: perSecond(promptTokens - cachedTokens, promptMs),
    // The first token is chosen from the logits of the prompt, so `generationMs` covers only the tokens after it.
    tokens_per_second: perSecond(completionTokens - 1, generationMs),
    device,
  };
  return { usage: { promptTokens, completionTokens }, metrics };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
