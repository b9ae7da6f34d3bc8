import { AssayError } from '../../lib/errors.ts';
import { FairShares } from '../../lib/fair-shares.ts';
import { type Acquired, KvCache } from './cache/kv-cache.ts';
import { type KvShape, prefixBytes } from './cache/sequence.ts';
import type { Forward, SequenceRun } from './forward/forward.ts';
import { LogitRows } from './forward/tensors.ts';
import type { Job, JobResult } from './job.ts';
import { JobRun } from './job-run.ts';
import { type ActiveJob, callerOf, isBatch, type PlannedJob, type SubmittedJob } from './scheduler/active-job.ts';
import { BatchPlanner } from './scheduler/batch-planner.ts';
import { DEFAULT_LIMITS, type Limits } from './scheduler/limits.ts';
import { WaitingJobs } from './scheduler/waiting-jobs.ts';

export interface EngineOptions {
  forward: Forward;
  kv: KvShape;
  maxPromptLen: number;
  contextLength: number;
  /** Maximum bytes of KV cache, for running jobs and cached prefixes together. */
  kvBytes: number;
  /**
   * Maximum number of jobs of each priority that hold a sequence at the same time. An interactive job of a caller that
   * runs no other one may exceed it (`RESERVED`). Default: 4, or `forward.slots` if that is larger.
   */
  maxRunning?: number;
  limits?: Partial<Limits>;
  /** Returns the current time in milliseconds, on the clock of `Job.deadline`. Default: `performance.now()`. */
  now?(): number;
}

/**
 * Number of interactive jobs that may hold a sequence beyond `EngineOptions.maxRunning`, each of a caller that runs no
 * other one. So a caller with many long jobs does not keep others from starting.
 */
const RESERVED = 4;
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
  readonly #waiting = new WaitingJobs(this.#shares);
  readonly #planner: BatchPlanner;
  /** Jobs that hold a sequence, the least recently served first. */
  #running: ActiveJob[] = [];
  #stepping: Promise<boolean> | null = null;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#forward = options.forward;
    this.#kv = new KvCache(options.kv, options.kvBytes);
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#now = options.now ?? (() => performance.now());
    this.#planner = new BatchPlanner({
      limits: this.#limits,
      slots: options.forward.slots,
      shares: this.#shares,
      now: this.#now,
      fail: (active, cause) => this.#fail(active, cause),
    });
  }

  /**
   * Queues a job; later calls of `step()` answer it. The caller must bound the number of waiting jobs
   * (`AdmissionQueue`). Rejects with `input_too_long` at once if a prompt exceeds `maxPromptLen`, with `timeout` in the
   * first step after the job's deadline, with `engine_failed` if the model fails on the job or memory is short, and
   * with `internal_error` if the job is malformed. After `signal` aborts, rejects with its reason and frees the KV
   * cells of the job within one step.
   */
  submit(job: Job, signal?: AbortSignal): Promise<JobResult> {
    return new Promise<JobResult>((resolve, reject) => {
      signal?.throwIfAborted();
      this.#check(job);
      this.#shares.add(job.caller ?? '');
      this.#waiting.add({ job, resolve, reject, signal, queuedAt: this.#now(), startedAt: 0, promptDoneAt: null });
    });
  }

  /**
   * Ends, admits and answers jobs, and runs the model once for all jobs that can use it; if that run fails, once for
   * each of them. Resolves to false if no job ran or finished. A call while a step is under way returns the promise of
   * that step.
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
    const batch = this.#planner.plan(this.#running);
    if (batch.length > 0) await this.#runBatch(batch);
    return finished || batch.length > 0;
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

  get kvBytes(): number {
    return this.#kv.bytes;
  }

  /**
   * Throws if a sequence of the KV cache is leaked, has two owners or is inconsistent, or if the cache exceeds
   * `kvBytes` although no job runs. Must not be called during a step.
   */
  checkIntegrity(): void {
    this.#kv.checkIntegrity(this.#running.map(({ run }) => run.sequence));
  }

  #check(job: Job): void {
    const { maxPromptLen } = this.#options;
    const longest = Math.max(0, ...job.branches.map((branch) => branch.suffix.length));
    const length = job.prefix.length + longest;
    if (length > maxPromptLen) {
      throw new AssayError(
        'input_too_long',
        `The prompt has ${length} tokens; the model is loaded for ${maxPromptLen}. Shorten it, or load the model with a larger max_prompt_len.`,
      );
    }
    if (job.branches.length === 0 || job.branches.some((branch) => branch.suffix.length === 0)) {
      throw new AssayError(
        'internal_error',
        'A job needs at least one branch, and each branch at least one token. Search the log for the request id.',
      );
    }
  }

  /** Ends the jobs whose caller has aborted or whose deadline has passed. */
  #dropEnded(): void {
    const now = this.#now();
    const reasonToEnd = ({ job, signal }: SubmittedJob): unknown => {
      if (signal?.aborted) return signal.reason;
      if (now < job.deadline) return undefined;
      return new AssayError('timeout', 'The answer was not ready in time. Try again, or send fewer tasks at once.');
    };
    for (const submitted of this.#waiting.all) {
      const reason = reasonToEnd(submitted);
      if (reason === undefined) continue;
      this.#waiting.remove(submitted);
      this.#reject(submitted, reason);
    }
    for (const active of [...this.#running]) {
      const reason = reasonToEnd(active.submitted);
      if (reason === undefined) continue;
      this.#running.splice(this.#running.indexOf(active), 1);
      this.#kv.release(active.run.sequence, active.run.reusablePrefixLength);
      this.#reject(active.submitted, reason);
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
      for (const submitted of this.#waiting.heads) {
        const mostBytes = this.#allowance(submitted);
        if (mostBytes === 0 || (blocked && mostBytes <= this.#options.kvBytes)) continue;
        started = this.#start(submitted, mostBytes);
        if (started) break;
        blocked = true;
      }
    }
  }

  /**
   * Returns the bytes of KV that a waiting job may bring those in use to, or 0 if there is no place for it. A job of a
   * caller that runs no other interactive job, and the only batch job, may exceed `kvBytes` by one context.
   */
  #allowance(submitted: SubmittedJob): number {
    const { maxRunning = Math.max(4, this.#forward.slots), kv, kvBytes, contextLength } = this.#options;
    const batch = isBatch(submitted);
    const alike = this.#running.filter((active) => isBatch(active.submitted) === batch);
    const own = alike.filter((active) => callerOf(active.submitted) === callerOf(submitted));
    const alone = (batch ? alike : own).length === 0;
    if (alike.length >= (alone && !batch ? maxRunning + RESERVED : maxRunning)) return 0;
    if (alone) return kvBytes + prefixBytes(kv, contextLength);
    return batch ? kvBytes * BATCH_SHARE : kvBytes;
  }

  /** Starts a waiting job, or rejects it if it cannot run. Returns false if running jobs leave no memory for it. */
  #start(submitted: SubmittedJob, mostBytes: number): boolean {
    const { job } = submitted;
    let acquired: Acquired | undefined;
    try {
      const scope = job.cacheScope ?? '';
      acquired = this.#kv.acquire(job.prefix, this.#cells(job), { scope, mostBytes });
    } catch (cause) {
      this.#waiting.remove(submitted);
      const message = 'The machine has too little memory for this input. Shorten it, or try again later.';
      this.#reject(submitted, new AssayError('engine_failed', message, { cause }));
      return true;
    }
    if (!acquired) return false;
    this.#waiting.remove(submitted);
    submitted.startedAt = this.#now();
    const sizes = { contextLength: this.#options.contextLength, vocabSize: this.#forward.vocabSize };
    try {
      const run = new JobRun(job, acquired, this.#kv, this.#limits, sizes);
      this.#running.push({ submitted, run, unread: job.prefix.length - acquired.cached });
    } catch (cause) {
      this.#kv.release(acquired.sequence, acquired.cached);
      const message = 'A task could not be prepared. Search the log for the request id.';
      this.#reject(submitted, new AssayError('internal_error', message, { cause }));
    }
    return true;
  }

  #reject(submitted: SubmittedJob, error: unknown): void {
    this.#shares.remove(callerOf(submitted), this.#now());
    submitted.reject(error);
  }

  /** Estimates the KV cells that a job will need. The job may grow beyond the estimate. */
  #cells({ prefix, branches, budget }: Job): number {
    const { group, groupTokens } = this.#limits;
    const suffixes = branches.slice(0, group).reduce((sum, { suffix }) => sum + suffix.length, 0);
    return prefix.length + Math.min(groupTokens, suffixes) + Math.min(budget, 256);
  }

  /** Answers the jobs that are finished. Returns false if there were none. */
  #finishDone(): boolean {
    const before = this.#running.length;
    for (const active of [...this.#running]) {
      try {
        if (active.run.advance()) continue;
        this.#running.splice(this.#running.indexOf(active), 1);
        this.#finish(active.submitted, active.run);
      } catch (cause) {
        this.#fail(active, cause);
      }
    }
    return this.#running.length < before;
  }

  /** Runs the jobs of a batch together. If that fails, runs each alone, so that only the faulty job ends. */
  async #runBatch(batch: readonly PlannedJob[]): Promise<void> {
    const planned = new Set(batch.map(({ active }) => active));
    this.#running = [...this.#running.filter((active) => !planned.has(active)), ...planned];
    try {
      const before = this.#now();
      for (const { active, newTokens } of batch) this.#shares.charge(callerOf(active.submitted), newTokens);
      const logits = await this.#forward.run(batch.map(sequenceRun));
      this.#planner.measured(batch, this.#now() - before);
      const rows = new LogitRows(logits, this.#forward.vocabSize);
      for (const one of batch) this.#deliver(one, rows.take(one.plan.rows.length));
    } catch (cause) {
      const [only] = batch;
      if (only && batch.length === 1) this.#fail(only.active, cause);
      else for (const one of batch) await this.#runBatch([one]);
    }
  }

  /** Passes a job its rows of logits. If that throws, only this job ends. */
  #deliver({ active, plan }: PlannedJob, logits: Float32Array): void {
    if (plan.rows.length > 0) active.submitted.promptDoneAt ??= this.#now();
    try {
      active.run.deliver(plan, logits, this.#forward.vocabSize);
    } catch (cause) {
      this.#fail(active, cause);
    }
  }

  #fail(active: ActiveJob, cause: unknown): void {
    this.#running = this.#running.filter((other) => other !== active);
    this.#kv.release(active.run.sequence, 0);
    const message = 'The model failed on this input. Try again, or load the model again.';
    this.#reject(active.submitted, new AssayError('engine_failed', message, { cause }));
  }

  #finish(submitted: SubmittedJob, run: JobRun): void {
    const end = this.#now();
    const promptDone = submitted.promptDoneAt ?? end;
    const result = run.result();
    this.#kv.release(run.sequence, run.reusablePrefixLength);
    this.#shares.remove(callerOf(submitted), end);
    submitted.resolve({
      ...result,
      queueMs: submitted.startedAt - submitted.queuedAt,
      promptMs: promptDone - submitted.startedAt,
      generationMs: end - promptDone,
    });
  }
}

function sequenceRun({ active, plan }: PlannedJob): SequenceRun {
  const { media } = active.submitted.job;
  const rows = plan.rows.map(({ cell }) => cell);
  return { sequence: active.run.sequence, start: plan.start, rows, keep: plan.keep, ...(media ? { media } : {}) };
}
