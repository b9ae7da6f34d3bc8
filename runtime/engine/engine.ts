import { AssayError } from '../../lib/errors.ts';
import { FairShares } from '../../lib/limits/fair-shares.ts';
import { type Acquired, KvCache } from './cache/kv-cache.ts';
import type { KvShape } from './cache/kv-shape.ts';
import type { SavedPrefixes } from './cache/saved-prefixes.ts';
import { prefixBytes } from './cache/sequence.ts';
import type { Forward, SequenceRun } from './forward/forward.ts';
import { LogitRows } from './forward/tensors.ts';
import { Job, type JobParts } from './job.ts';
import type { JobResult, JobSpec } from './job-spec.ts';
import { BatchPlanner } from './scheduler/batch-planner.ts';
import { defaultLimits, type Limits } from './scheduler/limits.ts';

export interface EngineOptions {
  forward: Forward;
  kv: KvShape;
  maxPromptLen: number;
  contextLength: number;
  /** Maximum bytes of KV cache, for running jobs and cached prefixes together. */
  kvBytes: number;
  /**
   * Maximum number of jobs of each priority that hold a sequence at the same time. An interactive job of a caller that
   * runs no other one may exceed it (`RESERVED`). Default: `placesOf`.
   */
  maxRunning?: number;
  limits?: Partial<Limits>;
  /**
   * False to compute the branches of all jobs side by side, as for models that cannot compute them apart
   * (`Forward.apart`). Default: true.
   */
  apart?: boolean;
  /** Keeps prefixes beyond the end of the process; absent: they end with it. */
  saved?: SavedPrefixes;
  /** Returns the current time in milliseconds, on the clock of `JobSpec.deadline`. Default: `performance.now()`. */
  now?(): number;
  /** Receives the error of a run of several jobs, which is then repeated one job at a time. */
  onBatchFailed?(cause: unknown): void;
}

/** Number of jobs of each priority that may hold a sequence although a run of the model takes fewer. */
const LEAST_PLACES = 4;
/**
 * Number of interactive jobs that may hold a sequence beyond `EngineOptions.maxRunning`, each of a caller that runs no
 * other one. So a caller with many long jobs does not keep others from starting.
 */
const RESERVED = 4;
/** Milliseconds that a token counts at least, because a clock may not tell the time of a short run. */
const LEAST_MS = 0.01;
/** Fraction of the KV cache that batch jobs may hold, unless no other batch job runs. */
const BATCH_SHARE = 0.5;

/**
 * Runs jobs on one model with continuous batching. Each `step()` schedules jobs, runs the model once, chooses tokens
 * and answers finished jobs. A run of the model has a token budget that all running jobs share: decoding jobs come
 * first, then prompts, so that no decoding job waits for a long prompt.
 */
export class Engine {
  readonly #forward: Forward;
  readonly #kv: KvCache;
  readonly #options: EngineOptions;
  readonly #limits: Limits;
  readonly #now: () => number;
  readonly #shares = new FairShares();
  readonly #parts: JobParts;
  readonly #planner: BatchPlanner;
  /** Jobs that wait for a sequence, in order of arrival. */
  #waiting: Job[] = [];
  /** Jobs that hold a sequence, the least recently served first. */
  #running: Job[] = [];
  #stepping: Promise<boolean> | null = null;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#forward = options.forward;
    this.#kv = new KvCache(options.kv, options.kvBytes);
    this.#limits = { ...defaultLimits(options.forward.vocabSize), ...options.limits };
    this.#now = options.now ?? (() => performance.now());
    const { contextLength, forward } = options;
    const { apart: mayBeApart = true } = options;
    const apart = mayBeApart && forward.apart === true;
    this.#parts = { kv: this.#kv, limits: this.#limits, contextLength, vocabSize: forward.vocabSize, apart };
    this.#planner = new BatchPlanner({
      limits: this.#limits,
      slots: options.forward.slots,
      shares: this.#shares,
      now: this.#now,
      fail: (job, cause) => this.#failRun(job, cause),
    });
  }

  /** Reads the saved prefix of a job into the KV cache, if there is one that helps. Must come before `submit`. */
  async restore({ prefix, cacheScope: scope = '', apart }: JobSpec): Promise<void> {
    const { saved } = this.#options;
    if (!saved) return;
    const exact = this.#parts.apart && apart === true;
    const cached = this.#kv.cachedLength(prefix, { scope, exact });
    const blank = (cells: number) => this.#kv.blank(cells);
    // Without memory for it, the job reads its prefix itself.
    const sequence = await saved.read(prefix, scope, { cached, exact, blank }).catch(() => null);
    if (sequence) this.#kv.adopt(sequence);
  }

  /**
   * Queues a job; later calls of `step()` answer it. The caller must bound the number of waiting jobs
   * (`AdmissionQueue`). Rejects with `input_too_long` at once if a prompt exceeds `maxPromptLen`, with `timeout` in the
   * first step after the job's deadline, with `engine_failed` if the model fails on the job or memory is short, and
   * with `internal_error` if the job is malformed. After `signal` aborts, rejects with its reason and frees the KV
   * cells of the job within one step.
   */
  submit(spec: JobSpec, signal?: AbortSignal): Promise<JobResult> {
    return new Promise<JobResult>((resolve, reject) => {
      signal?.throwIfAborted();
      this.#check(spec);
      const job = new Job(spec, { resolve, reject, signal, queuedAt: this.#now() }, this.#parts);
      this.#shares.add(job.caller, this.#now());
      this.#waiting.push(job);
    });
  }

  /**
   * Ends, admits and answers jobs, and runs the model once for all jobs that can use it; if that run fails, once for
   * each of them. A step that answers a job and leaves only batch jobs runs none. Resolves to false if no job ran or
   * finished. A call while a step is under way returns the promise of that step.
   */
  step(): Promise<boolean> {
    this.#stepping ??= this.#step().finally(() => {
      this.#stepping = null;
    });
    return this.#stepping;
  }

  async #step(): Promise<boolean> {
    this.#dropEnded();
    // Jobs that finish give their places to jobs that wait before the next run is planned.
    const ended = this.#finishDone();
    this.#admit();
    const finished = this.#finishDone() || ended;
    // Whoever gets an answer may ask again at once, and would have to wait for the run.
    if (finished && this.onlyBatch) return true;
    const before = this.#running.length;
    const batch = this.#planner.plan(this.#running);
    if (batch.length > 0) await this.#runBatch(batch);
    // A job whose planning failed may have left the run empty, although others have work.
    return finished || batch.length > 0 || this.#running.length < before;
  }

  /** True if no job is interactive. */
  get onlyBatch(): boolean {
    return [...this.#waiting, ...this.#running].every(({ isBatch }) => isBatch);
  }

  /** Tells whether a caller has a job that waits or runs. */
  serves(caller: string): boolean {
    return [...this.#waiting, ...this.#running].some((job) => job.caller === caller);
  }

  get queued(): number {
    return this.#waiting.length;
  }

  get running(): number {
    return this.#running.length;
  }

  /** Number of KV cells that hold a token, in sequences of running jobs and in idle ones, which cache prefixes. */
  get kvCells(): { running: number; cached: number; most: number } {
    return this.#kv.cells;
  }

  /** Number of prefixes that could not be saved. */
  get saveFailures(): number {
    return this.#options.saved?.failures ?? 0;
  }

  get kvBytes(): number {
    return this.#kv.bytes;
  }

  /**
   * Throws if a sequence of the KV cache is leaked, has two owners or is inconsistent, or if the cache exceeds
   * `kvBytes` although no job runs. Must not be called during a step.
   */
  checkIntegrity(): void {
    this.#kv.checkIntegrity(this.#running.map(({ sequence }) => sequence));
  }

  #check({ prefix, branches }: JobSpec): void {
    const { maxPromptLen } = this.#options;
    const longest = Math.max(0, ...branches.map((branch) => branch.suffix.length));
    const length = prefix.length + longest;
    if (length > maxPromptLen) {
      throw new AssayError(
        'input_too_long',
        `The prompt has ${length} tokens; the model is loaded for ${maxPromptLen}. Shorten it, or load the model with a larger max_prompt_len.`,
      );
    }
    if (branches.length === 0 || branches.some((branch) => branch.suffix.length === 0)) {
      throw new AssayError(
        'internal_error',
        'A job needs at least one branch, and each branch at least one token. Search the log for the request id.',
      );
    }
  }

  /** Ends the jobs whose caller has aborted or whose deadline has passed. */
  #dropEnded(): void {
    const now = this.#now();
    const reasonToEnd = ({ spec, submission: { signal } }: Job): unknown => {
      if (signal?.aborted) return signal.reason;
      if (now < spec.deadline) return undefined;
      return new AssayError('timeout', 'The answer was not ready in time. Try again, or send fewer tasks at once.');
    };
    for (const job of [...this.#waiting, ...this.#running]) {
      const reason = reasonToEnd(job);
      if (reason !== undefined) this.#fail(job, reason, job.status === 'running' ? job.reusablePrefixLength : 0);
    }
  }

  /**
   * Gives sequences to waiting jobs: interactive jobs first, then batch jobs, which have places and memory of their
   * own. A job that is next but lacks memory keeps later ones of its priority from taking that memory.
   */
  #admit(): void {
    for (let started = true; started; ) {
      started = false;
      let blocked = false;
      for (const job of this.#heads()) {
        const mostBytes = this.#allowance(job);
        if (mostBytes === 0 || (blocked && mostBytes <= this.#options.kvBytes)) continue;
        started = this.#start(job, mostBytes);
        if (started) break;
        blocked = true;
      }
    }
  }

  /**
   * Returns the oldest waiting job of each caller and priority, in the order in which they should start: interactive
   * jobs first, and of each priority those of the callers that got least.
   */
  #heads(): readonly Job[] {
    const heads = new Map<string, Job>();
    for (const job of this.#waiting) {
      const key = `${job.isBatch} ${job.caller}`;
      if (!heads.has(key)) heads.set(key, job);
    }
    const used = ({ caller }: Job) => this.#shares.used(caller);
    return [...heads.values()].sort((a, b) => Number(a.isBatch) - Number(b.isBatch) || used(a) - used(b));
  }

  /**
   * Returns the bytes of KV that a waiting job may bring those in use to, or 0 if there is no place for it. A job of a
   * caller that runs no other interactive job, and the only batch job, may exceed `kvBytes` by one context.
   */
  #allowance({ isBatch: batch, caller }: Job): number {
    const { maxRunning = placesOf(this.#forward), kv, kvBytes, contextLength } = this.#options;
    const alike = this.#running.filter((job) => job.isBatch === batch);
    const own = alike.filter((job) => job.caller === caller);
    const alone = (batch ? alike : own).length === 0;
    if (alike.length >= (alone && !batch ? maxRunning + RESERVED : maxRunning)) return 0;
    if (alone) return kvBytes + prefixBytes(kv, contextLength);
    return batch ? kvBytes * BATCH_SHARE : kvBytes;
  }

  /** Starts a waiting job, or fails it if it cannot run. Returns false if running jobs leave no memory for it. */
  #start(job: Job, mostBytes: number): boolean {
    const { spec } = job;
    let acquired: Acquired | undefined;
    try {
      const scope = spec.cacheScope ?? '';
      const { apart } = job;
      const cells = apart ? job.longestTrunk : this.#cells(spec);
      acquired = this.#kv.acquire(spec.prefix, cells, { scope, mostBytes, exact: apart });
    } catch (cause) {
      const message = 'The machine has too little memory for this input. Shorten it, or try again later.';
      this.#fail(job, new AssayError('engine_failed', message, { cause }));
      return true;
    }
    if (!acquired) return false;
    try {
      job.start(acquired, this.#now());
      this.#waiting.splice(this.#waiting.indexOf(job), 1);
      this.#running.push(job);
    } catch (cause) {
      this.#kv.release(acquired.sequence, acquired.cached);
      const message = 'A task could not be prepared. Search the log for the request id.';
      this.#fail(job, new AssayError('internal_error', message, { cause }));
    }
    return true;
  }

  /**
   * Estimates the KV cells that a job will need. The job may grow beyond the estimate, by a quarter at least, but then
   * all of its cells are copied, which takes long after a long prefix.
   */
  #cells({ prefix, branches, budget }: JobSpec): number {
    const { group, groupTokens } = this.#limits;
    const suffixes = branches.slice(0, group).reduce((sum, { suffix }) => sum + suffix.length, 0);
    const answer = Math.min(budget, Math.max(256, Math.floor(prefix.length / 4)));
    return prefix.length + Math.min(groupTokens, suffixes) + answer;
  }

  /** Answers the jobs that are finished. Returns false if there were none. */
  #finishDone(): boolean {
    const before = this.#running.length;
    for (const job of [...this.#running]) {
      try {
        if (!job.advance()) this.#finish(job);
      } catch (cause) {
        this.#failRun(job, cause);
      }
    }
    return this.#running.length < before;
  }

  /** Runs the jobs of a batch together. If that fails, runs each alone, so that only the faulty job ends. */
  async #runBatch(batch: readonly Job[]): Promise<void> {
    const planned = new Set(batch);
    this.#running = [...this.#running.filter((job) => !planned.has(job)), ...planned];
    try {
      const before = this.#now();
      const logits = await this.#forward.run(batch.map(sequenceRun));
      const ms = this.#now() - before;
      this.#charge(batch, ms);
      this.#planner.measured(batch, ms);
      const rows = new LogitRows(logits, this.#forward.vocabSize);
      for (const job of batch) this.#deliver(job, rows.take(job.plan.rows.length));
    } catch (cause) {
      const [only] = batch;
      if (only && batch.length === 1) this.#failRun(only, cause);
      else {
        this.#options.onBatchFailed?.(cause);
        for (const job of batch) await this.#runBatch([job]);
      }
    }
  }

  /** Charges each caller with its part of the time of a run: tokens after a long prefix take longer than others. */
  #charge(batch: readonly Job[], ms: number): void {
    const tokens = batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
    const each = Math.max(LEAST_MS, ms / Math.max(1, tokens));
    for (const { caller, newTokens } of batch) this.#shares.charge(caller, each * newTokens);
  }

  /** Passes a job its rows of logits. If that throws, only this job ends. */
  #deliver(job: Job, logits: Float32Array): void {
    if (job.plan.rows.length > 0) job.promptDoneAt ??= this.#now();
    try {
      job.deliver(logits);
    } catch (cause) {
      this.#failRun(job, cause);
    }
  }

  #finish(job: Job): void {
    const now = this.#now();
    job.finish(now);
    this.#running.splice(this.#running.indexOf(job), 1);
    const { sequence, reusablePrefixLength: reusable } = job;
    this.#kv.release(sequence, reusable);
    // Batch jobs are many, and few of them come again.
    if (!job.isBatch) this.#options.saved?.save(sequence, reusable);
    this.#shares.remove(job.caller, now);
  }

  #failRun(job: Job, cause: unknown): void {
    const message = 'The model failed on this input. Try again, or load the model again.';
    this.#fail(job, new AssayError('engine_failed', message, { cause }));
  }

  /** Ends a job with an error. `reusable` is the number of cells of its sequence that a later job may reuse. */
  #fail(job: Job, error: unknown, reusable = 0): void {
    if (job.status === 'running') this.#kv.release(job.sequence, reusable);
    this.#waiting = this.#waiting.filter((other) => other !== job);
    this.#running = this.#running.filter((other) => other !== job);
    this.#shares.remove(job.caller, this.#now());
    job.fail(error);
  }
}

/** Returns how many jobs of one caller and priority may hold a sequence: as many as a run takes, and `LEAST_PLACES`. */
export function placesOf({ slots }: Pick<Forward, 'slots'>): number {
  return Math.max(LEAST_PLACES, slots);
}

function sequenceRun({ spec, sequence, plan, apart }: Job): SequenceRun {
  const { media } = spec;
  const rows = plan.rows.map(({ cell }) => cell);
  return { sequence, start: plan.start, rows, keep: plan.keep, exact: apart, ...(media ? { media } : {}) };
}
