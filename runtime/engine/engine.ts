import { AssayError } from '../../lib/errors.ts';
import type { Forward } from './forward.ts';
import type { Job, JobResult } from './job.ts';
import { DEFAULT_LIMITS, JobRun, type Limits, type Plan } from './job-run.ts';
import { KvCache } from './kv-cache.ts';
import type { KvShape } from './sequence.ts';

export interface EngineOptions {
  forward: Forward;
  kv: KvShape;
  maxPromptLen: number;
  contextLength: number;
  /** Bytes of KV for running jobs and kept prefixes together. */
  kvBytes: number;
  /** Jobs that hold a sequence at the same time. */
  maxRunning?: number;
  limits?: Partial<Limits>;
  /** Milliseconds; the clock of `Job.deadline`. */
  now?(): number;
}

interface Entry {
  job: Job;
  resolve(result: JobResult): void;
  reject(error: unknown): void;
  signal: AbortSignal | undefined;
  queuedAt: number;
  startedAt: number;
  /** When the first row of logits arrived. */
  promptDoneAt: number | null;
}

/**
 * Runs jobs on one model. `step()` is the whole of it: schedule, forward, choose, deliver. Jobs that run take turns step by
 * step, so a long chat and a batch of tasks share the model fairly.
 */
export class Engine {
  readonly #forward: Forward;
  readonly #kv: KvCache;
  readonly #options: EngineOptions;
  readonly #limits: Limits;
  readonly #now: () => number;
  readonly #queue: Entry[] = [];
  /** In the order of their next turns. */
  #running: { entry: Entry; run: JobRun }[] = [];
  #stepping: Promise<boolean> | null = null;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#forward = options.forward;
    this.#kv = new KvCache(options.kv, options.kvBytes);
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Queues a job; it is answered while someone calls `step()`. How many may wait is the caller's to bound (`process/places.ts`). Throws
   * `input_too_long`, `timeout` (its deadline) or `engine_failed`; when `signal` is aborted, its reason, and the job's KV is free within one step.
   */
  submit(job: Job, signal?: AbortSignal): Promise<JobResult> {
    return new Promise<JobResult>((resolve, reject) => {
      signal?.throwIfAborted();
      this.#check(job);
      const entry = { job, resolve, reject, signal, queuedAt: this.#now(), startedAt: 0, promptDoneAt: null };
      this.#queue.push(entry);
    });
  }

  /** One turn of the next job; false when there is nothing to do. Called again before it is over, it is still the same turn. */
  step(): Promise<boolean> {
    this.#stepping ??= this.#step().finally(() => {
      this.#stepping = null;
    });
    return this.#stepping;
  }

  async #step(): Promise<boolean> {
    this.#dropLost();
    this.#admit();
    const turn = this.#running.shift();
    if (!turn) return false;
    const { entry, run } = turn;
    try {
      const plan = run.plan();
      if (plan) {
        await this.#runModel(entry, run, plan);
        this.#running.push(turn);
      } else this.#finish(entry, run);
    } catch (cause) {
      this.#kv.release(run.sequence, 0);
      entry.reject(
        new AssayError('engine_failed', 'The model failed on this input. Try again, or load the model anew.', {
          cause,
        }),
      );
    }
    return true;
  }

  get queued(): number {
    return this.#queue.length;
  }

  get running(): number {
    return this.#running.length;
  }

  get kvBytes(): number {
    return this.#kv.bytes;
  }

  /** Throws when KV is leaked or owned twice. Call it between steps. */
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
        `The prompt has ${length} tokens; the model is loaded for ${maxPromptLen}.`,
      );
    }
    if (job.branches.length === 0 || job.branches.some((branch) => branch.suffix.length === 0)) {
      throw new AssayError('internal_error', 'A job needs branches, and each branch a token to begin with.');
    }
  }

  /** Ends jobs whose caller has left or whose time is over. */
  #dropLost(): void {
    const now = this.#now();
    const lost = ({ job, signal }: Entry): unknown => {
      if (signal?.aborted) return signal.reason;
      if (now < job.deadline) return undefined;
      return new AssayError('timeout', 'The answer was not ready in time. Send less at once, or try again later.');
    };
    for (const entry of [...this.#queue]) {
      const reason = lost(entry);
      if (reason === undefined) continue;
      this.#queue.splice(this.#queue.indexOf(entry), 1);
      entry.reject(reason);
    }
    for (const turn of [...this.#running]) {
      const reason = lost(turn.entry);
      if (reason === undefined) continue;
      this.#running.splice(this.#running.indexOf(turn), 1);
      this.#kv.release(turn.run.sequence, turn.run.reusablePrefixLength);
      turn.entry.reject(reason);
    }
  }

  /** Gives sequences to waiting jobs, first come first served. */
  #admit(): void {
    const { maxRunning = 4 } = this.#options;
    while (this.#queue.length > 0 && this.#running.length < maxRunning) {
      const entry = this.#queue[0]!;
      const acquired = this.#kv.acquire(entry.job.prefix, this.#cells(entry.job));
      if (!acquired) return;
      this.#queue.shift();
      entry.startedAt = this.#now();
      const facts = { contextLength: this.#options.contextLength, vocabSize: this.#forward.vocabSize };
      try {
        this.#running.push({ entry, run: new JobRun(entry.job, acquired, this.#kv, this.#limits, facts) });
      } catch (cause) {
        this.#kv.release(acquired.sequence, acquired.cached);
        entry.reject(new AssayError('internal_error', 'A task could not be prepared.', { cause }));
      }
    }
  }

  /** Cells that a job will probably need; it may grow beyond. */
  #cells({ prefix, branches, budget }: Job): number {
    const { group, groupTokens } = this.#limits;
    const suffixes = branches.slice(0, group).reduce((sum, { suffix }) => sum + suffix.length, 0);
    return prefix.length + Math.min(groupTokens, suffixes) + Math.min(budget, 256);
  }

  async #runModel(entry: Entry, run: JobRun, plan: Plan): Promise<void> {
    const logits = await this.#forward.run(
      run.sequence,
      plan.start,
      plan.rows.map((row) => row.cell),
      plan.keep,
    );
    if (plan.rows.length > 0) entry.promptDoneAt ??= this.#now();
    run.deliver(plan, logits, this.#forward.vocabSize);
  }

  #finish(entry: Entry, run: JobRun): void {
    const end = this.#now();
    const promptDone = entry.promptDoneAt ?? end;
    const result = run.result();
    this.#kv.release(run.sequence, run.reusablePrefixLength);
    entry.resolve({
      ...result,
      queueMs: entry.startedAt - entry.queuedAt,
      promptMs: promptDone - entry.startedAt,
      generationMs: end - promptDone,
    });
  }
}
