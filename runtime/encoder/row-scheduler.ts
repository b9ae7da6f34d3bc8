import { setImmediate } from 'node:timers/promises';
import type { Priority } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { FairShares } from '../../lib/limits/fair-shares.ts';
import type { EncoderRow, RowOutput } from './adapter.ts';
import type { EncoderGraphs } from './encoder-graphs.ts';

export interface RowJob {
  rows: readonly EncoderRow[];
  /** Name of the key that asks. */
  caller: string;
  signal: AbortSignal;
  /** Time, on the clock of `performance.now()`, after which the job fails with `timeout`. */
  deadline: number;
  priority?: Priority | undefined;
}

interface Waiting extends RowJob {
  batches: EncoderRow[][];
  outputs: Map<EncoderRow, RowOutput>;
  submittedAt: number;
  startedAt: number | null;
  resolve(result: RowResult): void;
  reject(error: unknown): void;
}

/** Holds the outputs of a job's rows in their order, and how long it waited and ran. */
export interface RowResult {
  outputs: RowOutput[];
  queueMs: number;
  runMs: number;
}

/** Number of interactive jobs that may begin while a batch job waits; then it is its turn. */
const MOST_PASSING = 3;

/**
 * Runs the rows of requests run by run: interactive ones first, and of those the job of the caller that has used least
 * time. Between runs, messages of the process are read, and jobs whose caller has left or whose time is up are ended.
 */
export class RowScheduler {
  readonly #graphs: Pick<EncoderGraphs, 'batches' | 'run'>;
  readonly #jobs: Waiting[] = [];
  readonly #shares = new FairShares();
  #passed = 0;
  #busy = false;

  constructor(graphs: Pick<EncoderGraphs, 'batches' | 'run'>) {
    this.#graphs = graphs;
  }

  /** Number of jobs that have begun. */
  get running(): number {
    return this.#jobs.filter(({ startedAt }) => startedAt !== null).length;
  }

  get waiting(): number {
    return this.#jobs.length - this.running;
  }

  /**
   * Computes the rows of a job, each once. Rejects with `timeout` after its deadline, with the signal's reason if it
   * aborts, and with the error of a run that fails.
   */
  submit(job: RowJob): Promise<RowResult> {
    return new Promise<RowResult>((resolve, reject) => {
      const submittedAt = performance.now();
      this.#shares.add(job.caller, submittedAt);
      const batches = this.#graphs.batches([...new Set(job.rows)]);
      this.#jobs.push({ ...job, batches, outputs: new Map(), submittedAt, startedAt: null, resolve, reject });
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job = this.#next(); job; job = this.#next()) {
      await this.#step(job);
      await setImmediate();
    }
    this.#busy = false;
  }

  async #step(job: Waiting): Promise<void> {
    try {
      job.signal.throwIfAborted();
      if (performance.now() >= job.deadline) {
        throw new AssayError('timeout', 'The answer was not ready in time. Try again, or send fewer tasks at once.');
      }
      if (job.startedAt === null) {
        job.startedAt = performance.now();
        this.#passed = isBatch(job) || !this.#jobs.some(isBatch) ? 0 : this.#passed + 1;
      }
      const batch = job.batches.shift() ?? [];
      const before = performance.now();
      const outputs = batch.length > 0 ? await this.#graphs.run(batch) : [];
      this.#shares.charge(job.caller, performance.now() - before);
      for (const [i, row] of batch.entries()) job.outputs.set(row, outputs[i] ?? {});
      if (job.batches.length > 0) return;
      this.#remove(job);
      job.resolve({
        outputs: job.rows.map((row) => job.outputs.get(row) ?? {}),
        queueMs: job.startedAt - job.submittedAt,
        runMs: performance.now() - job.startedAt,
      });
    } catch (error) {
      this.#remove(job);
      job.reject(error);
    }
  }

  /**
   * Returns the job whose rows run next: one whose caller has left, so that it ends soon, or the first by priority and
   * by what its caller has used.
   */
  #next(): Waiting | undefined {
    const ended = this.#jobs.find(({ signal, deadline }) => signal.aborted || performance.now() >= deadline);
    if (ended) return ended;
    const batch = this.#shares.takeNext(this.#jobs.filter(isBatch));
    if (batch && this.#passed >= MOST_PASSING) return batch;
    return this.#shares.takeNext(this.#jobs.filter((job) => !isBatch(job))) ?? batch;
  }

  #remove(job: Waiting): void {
    const index = this.#jobs.indexOf(job);
    if (index < 0) return;
    this.#jobs.splice(index, 1);
    this.#shares.remove(job.caller, performance.now());
  }
}

function isBatch({ priority }: RowJob): boolean {
  return priority === 'batch';
}
