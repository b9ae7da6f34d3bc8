import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import { BranchRun } from './branch-run.ts';
import type { Job, JobResult } from './job.ts';
import type { KvCache } from './kv-cache.ts';
import type { Limits } from './limits.ts';
import { inImage } from './media-feeds.ts';
import type { Sequence } from './sequence.ts';
import { TokenBudget } from './token-budget.ts';

/** Tokens that are drafted for a branch at most. */
const MOST_DRAFTED = 8;

/** Plans one run of the model: the cells from `start` on are new, the logits of `rows` are needed. */
export interface Plan {
  start: number;
  rows: readonly PlannedRow[];
  /** Cells whose states are kept, for a model that has states. */
  keep: readonly number[];
  /** In a run that only reads branches again for their states: the cells that `keep` repeats. */
  again?: readonly number[];
}

interface PlannedRow {
  cell: number;
  branch: number;
  node: number;
}

/** Runs a job that holds a sequence: its prefix, then its branches group by group. */
export class JobRun {
  readonly job: Job;
  readonly sequence: Sequence;
  readonly cachedTokens: number;
  readonly #kv: KvCache;
  readonly #limits: Limits;
  readonly #branches: BranchRun[];
  /** Indices of the branches that are in the sequence now. */
  #group: number[] = [];
  #next = 0;
  #prefilled: number;

  constructor(
    job: Job,
    acquired: { sequence: Sequence; cached: number },
    kv: KvCache,
    limits: Limits,
    { contextLength, vocabSize }: { contextLength: number; vocabSize: number },
  ) {
    this.job = job;
    this.sequence = acquired.sequence;
    this.cachedTokens = acquired.cached;
    this.#prefilled = acquired.cached;
    this.#kv = kv;
    this.#limits = limits;
    const budget = new TokenBudget(job.budget);
    this.#branches = job.branches.map(
      (spec, index) =>
        new BranchRun(spec, {
          prefix: job.prefix,
          contextLength,
          vocabSize,
          share: spec.unmetered ? budget.unmetered(spec.maxTokens) : budget.addShare(spec.maxTokens),
          onToken: (token) => job.onToken?.(index, token),
        }),
    );
  }

  /** Opens the next group of branches if none is open. Returns false when the job is finished. */
  advance(): boolean {
    return this.#openGroup();
  }

  /** New tokens that the job needs before all open branches can choose again: one or a few while it decodes. */
  get waitingTokens(): number {
    return this.job.prefix.length - this.#prefilled + this.#waiting;
  }

  /** Appends the tokens of the next run, about `tokens` at most. Call `advance` before. */
  plan(tokens: number): Plan {
    const again = this.#readAgain();
    if (again) return again;
    const { prefix } = this.job;
    const start = this.sequence.length;
    const end = start + this.#runLength(tokens);
    this.#kv.reserve(this.sequence, end);
    while (this.#prefilled < prefix.length && this.sequence.length < end) {
      const token = at(prefix, this.#prefilled++);
      this.sequence.append(token, this.sequence.length - 1, inImage(token, this.job.media));
    }
    const rows: PlannedRow[] = [];
    const keep = this.#prefilled > start ? [this.#prefilled - 1] : [];
    if (this.#prefilled < prefix.length) return { start, rows, keep };
    for (const branch of this.#group) {
      const room = end - this.sequence.length;
      const found = this.#branch(branch).feed(this.sequence, room, this.#limits.rows - rows.length);
      rows.push(...found.map(({ cell, node }) => ({ cell, node, branch })));
    }
    const growing = this.#group.flatMap((branch) => this.#branch(branch).growing);
    keep.push(...new Set(growing.filter((cell) => cell >= start)));
    return { start, rows, keep };
  }

  /**
   * Adds up to `tokens` drafted ones to a plan, for branches that decode and are read as far as they go. States cannot
   * be rolled back, so a model that has such gets none.
   */
  draft(plan: Plan, tokens: number): Plan {
    const { sequence } = this;
    if (plan.rows.length === 0 || plan.again || sequence.snapshots.needed || this.waitingTokens > 0) return plan;
    const room = Math.min(tokens, sequence.capacity - sequence.length, this.#limits.rows - plan.rows.length);
    const each = Math.min(MOST_DRAFTED, Math.floor(room / this.#group.length));
    if (each <= 0) return plan;
    const rows = this.#group.flatMap((branch) =>
      this.#branch(branch)
        .draft(sequence, each)
        .map((row) => ({ ...row, branch })),
    );
    return { ...plan, rows: [...plan.rows, ...rows] };
  }

  /**
   * Plans a run that reads the ends of branches again whose states were not kept: options are scored without states,
   * and few of them continue. Null when nothing is missing.
   */
  #readAgain(): Plan | null {
    const { sequence } = this;
    const { snapshots } = sequence;
    if (!snapshots.needed || this.#prefilled < this.job.prefix.length) return null;
    const missing = new Set(this.#group.flatMap((branch) => this.#branch(branch).heads));
    const again = [...missing].filter((cell) => !snapshots.at(cell));
    if (again.length === 0) return null;
    const paths = again.map((end) => {
      const path: number[] = [];
      let cell = end;
      for (; cell >= 0 && !snapshots.at(cell); cell = at(sequence.parents, cell)) path.push(cell);
      return { root: cell, path: path.reverse() };
    });
    const start = sequence.length;
    this.#kv.reserve(
      sequence,
      paths.reduce((sum, { path }) => sum + path.length, start),
    );
    const keep = paths.map(({ root, path }) =>
      path.reduce((parent, cell) => sequence.append(at(sequence.tokens, cell), parent), root),
    );
    return { start, rows: [], keep, again };
  }

  /**
   * Returns the tokens of the next run. Runs get similar lengths: a short last one would read all weights for a few
   * tokens.
   */
  #runLength(tokens: number): number {
    const left = this.waitingTokens;
    return Math.ceil(left / Math.max(1, Math.ceil(left / tokens - 0.5)));
  }

  /** Counts the tokens of the group that wait to be fed. */
  get #waiting(): number {
    return this.#group.reduce((sum, branch) => sum + this.#branch(branch).waiting, 0);
  }

  /** Gives each row of logits to its branch, which chooses. */
  deliver({ start, rows, keep, again }: Plan, logits: Float32Array, vocabSize: number): void {
    if (again) {
      for (const [index, cell] of again.entries()) {
        const snapshot = this.sequence.snapshots.at(at(keep, index));
        if (!snapshot) throw new AssayError('internal_error', `The run stored no states of cell ${cell}.`);
        this.sequence.snapshots.set(cell, snapshot);
      }
      this.sequence.truncate(start);
      return;
    }
    for (const [index, { branch, node }] of rows.entries()) {
      const run = this.#branch(branch);
      run.deliver(node, logits.subarray(index * vocabSize, (index + 1) * vocabSize));
      const rollback = run.takeRollback();
      if (rollback !== null && this.#group.length === 1) this.sequence.truncate(rollback);
    }
    this.#dropDrafts();
    this.#group = this.#group.filter((branch) => !this.#branch(branch).done);
    this.#dropSnapshots();
  }

  /** Frees the KV cells of rejected draft tokens at the end of the sequence. One with a kept cell after it stays. */
  #dropDrafts(): void {
    const rejected = new Set(this.#group.flatMap((branch) => this.#branch(branch).takeRejected()));
    let { length } = this.sequence;
    while (rejected.has(length - 1)) length--;
    this.sequence.truncate(length);
  }

  /** Keeps only the snapshots after which branches continue, and those that a later job can use. */
  #dropSnapshots(): void {
    const { snapshots } = this.sequence;
    if (!snapshots.needed) return;
    const wanted = snapshots.worthKeeping(this.#prefilled);
    for (const branch of this.#group) for (const cell of this.#branch(branch).heads) wanted.add(cell);
    if (this.job.branches.length === 1) wanted.add(Math.max(...snapshots.cells));
    snapshots.keepOnly((cell) => wanted.has(cell));
  }

  #branch(index: number): BranchRun {
    return at(this.#branches, index);
  }

  result(): Omit<JobResult, 'queueMs' | 'promptMs' | 'generationMs'> {
    const branches = this.#branches.map((branch) => branch.result());
    return { branches, promptTokens: promptTokens(this.job), cachedTokens: this.cachedTokens };
  }

  /**
   * Cells that the next request may reuse: the prefix; after a single branch also its answer, which the next message of
   * a chat repeats.
   */
  get reusablePrefixLength(): number {
    return this.job.branches.length === 1
      ? this.sequence.trunkLength
      : Math.min(this.job.prefix.length, this.sequence.trunkLength);
  }

  /** Starts the next branches unless some are running. Returns false when none is left. */
  #openGroup(): boolean {
    if (this.#group.length > 0) return true;
    if (this.#next === this.#branches.length) return false;
    if (this.#prefilled === this.job.prefix.length) this.sequence.truncate(this.job.prefix.length);
    let tokens = 0;
    while (this.#next < this.#branches.length && this.#group.length < this.#limits.group) {
      const run = this.#branch(this.#next);
      if (run.waiting === 0 && !run.done) run.start();
      if (this.#group.length > 0 && tokens + run.waiting > this.#limits.groupTokens) break;
      const before = this.#group.at(-1);
      // A question in two orders of its options has the same words before them.
      if (before !== undefined && !run.done) run.shareBeginning(this.#branch(before));
      if (!run.done) this.#group.push(this.#next);
      tokens += run.waiting;
      this.#next++;
    }
    return this.#group.length > 0;
  }
}

/** Counts the shared prefix once, and every branch's own part. */
function promptTokens(job: Job): number {
  return job.branches.reduce((sum, branch) => sum + branch.suffix.length, job.prefix.length);
}
