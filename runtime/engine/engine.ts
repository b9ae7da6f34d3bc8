import { AssayError } from '../../lib/errors.ts';
import { type Acquired, KvCache } from './cache/kv-cache.ts';
import type { KvShape } from './cache/sequence.ts';
import type { Forward, SequenceRun } from './forward/forward.ts';
import { LogitRows } from './forward/tensors.ts';
import type { Job, JobResult } from './job.ts';
import { JobRun } from './job-run.ts';
import type { ActiveJob, PlannedJob, SubmittedJob } from './scheduler/active-job.ts';
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
  /** Maximum number of jobs that hold a sequence at the same time. Default: 4, or `forward.slots` if that is larger. */
  maxRunning?: number;
  limits?: Partial<Limits>;
  /** Returns the current time in milliseconds, on the clock of `Job.deadline`. Default: `performance.now()`. */
  now?(): number;
}

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
  readonly #waiting = new WaitingJobs();
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
    this.#admit();
    const finished = this.#finishDone();
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
  get kvCells(): { running: number; cached: number } {
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
      submitted.reject(reason);
    }
    for (const active of [...this.#running]) {
      const reason = reasonToEnd(active.submitted);
      if (reason === undefined) continue;
      this.#running.splice(this.#running.indexOf(active), 1);
      this.#kv.release(active.run.sequence, active.run.reusablePrefixLength);
      active.submitted.reject(reason);
    }
  }

  /** Gives sequences to waiting jobs: interactive jobs first, each priority in order of arrival. */
  #admit(): void {
    const { maxRunning = Math.max(4, this.#forward.slots) } = this.#options;
    for (let submitted = this.#waiting.next(); submitted; submitted = this.#waiting.next()) {
      if (this.#running.length >= maxRunning) return;
      let acquired: Acquired | undefined;
      try {
        acquired = this.#kv.acquire(submitted.job.prefix, this.#cells(submitted.job));
      } catch (cause) {
        this.#waiting.remove(submitted);
        const message = 'The machine has too little memory for this input. Shorten it, or try again later.';
        submitted.reject(new AssayError('engine_failed', message, { cause }));
        continue;
      }
      if (!acquired) return;
      this.#waiting.admit(submitted);
      submitted.startedAt = this.#now();
      const sizes = { contextLength: this.#options.contextLength, vocabSize: this.#forward.vocabSize };
      try {
        const run = new JobRun(submitted.job, acquired, this.#kv, this.#limits, sizes);
        this.#running.push({ submitted, run, unread: submitted.job.prefix.length - acquired.cached });
      } catch (cause) {
        this.#kv.release(acquired.sequence, acquired.cached);
        submitted.reject(
          new AssayError('internal_error', 'A task could not be prepared. Search the log for the request id.', {
            cause,
          }),
        );
      }
    }
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
    active.submitted.reject(new AssayError('engine_failed', message, { cause }));
  }

  #finish(submitted: SubmittedJob, run: JobRun): void {
    const end = this.#now();
    const promptDone = submitted.promptDoneAt ?? end;
    const result = run.result();
    this.#kv.release(run.sequence, run.reusablePrefixLength);
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
