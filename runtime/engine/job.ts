import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import { type BranchContext, BranchRun } from './branches/branch-run.ts';
import { TokenBudget } from './branches/token-budget.ts';
import { cellsFor } from './cache/branch-cells.ts';
import type { KvCache } from './cache/kv-cache.ts';
import type { Sequence } from './cache/sequence.ts';
import { rowsMissing } from './forward/forward.ts';
import { inImage } from './forward/media-feeds.ts';
import type { JobResult, JobSpec } from './job-spec.ts';
import type { Limits } from './scheduler/limits.ts';

/** Maximum number of tokens to draft for one branch in a run. */
const MOST_DRAFTED = 8;

/** Describes one job's part of a run of the model: its new cells are those from `start` to the sequence's end. */
export interface Plan {
  start: number;
  /** Cells whose logits are needed. */
  rows: readonly PlannedRow[];
  /** Cells after which to store a state snapshot, for a model with recurrent layers. */
  keep: readonly number[];
  /**
   * Cells whose recurrent states the run recomputes (`planReplay`), each from the copy that `keep` names at the same
   * index; absent in all other runs.
   */
  replayed?: readonly number[];
}

/** Names a cell whose logits a branch needs. */
export interface PlannedRow {
  cell: number;
  /** Index of the branch that needs the logits. */
  branch: number;
  /** Id of the request for logits, to pass to `BranchRun.deliver`. */
  node: number;
}

/** Holds what all jobs of an engine share. */
export interface JobParts {
  kv: KvCache;
  limits: Limits;
  contextLength: number;
  vocabSize: number;
  /** True if branches can be computed apart from their prefix (`JobSpec.apart`). */
  apart: boolean;
}

/** Holds what settles a job, and when it was submitted, in milliseconds on the clock of `EngineOptions.now`. */
export interface Submission {
  resolve(result: JobResult): void;
  reject(error: unknown): void;
  signal: AbortSignal | undefined;
  queuedAt: number;
}

/**
 * Represents a job from its submission to its answer. It waits until it gets a sequence; then it runs first its prefix,
 * then its branches in groups. Times are in milliseconds, on the clock of `EngineOptions.now`.
 */
export class Job {
  readonly spec: JobSpec;
  readonly submission: Submission;
  /** `waiting` until it gets a sequence; `done` if it was answered or has failed. */
  status: 'waiting' | 'running' | 'done' = 'waiting';
  /** Time at which the job got a sequence; 0 while it waits. */
  startedAt = 0;
  /** Time at which the model returned the job's first logits; null before that. */
  promptDoneAt: number | null = null;
  /** The sequence that the job runs on; set while it runs. */
  sequence!: Sequence;
  cachedTokens = 0;
  /** The job's part of the run of the model that was planned last. */
  plan: Plan = { start: 0, rows: [], keep: [] };
  /** Number of new tokens in that run, without drafted ones. */
  newTokens = 0;
  /** True once the model has returned logits for the open branches. */
  decodes = false;
  readonly #parts: JobParts;
  readonly #contexts: readonly BranchContext[];
  /** The branches by their index, from when they are needed: building the trees of many options takes long. */
  readonly #branches: BranchRun[] = [];
  /** Indices of the open branches: those of the current group that are not done. */
  #group: number[] = [];
  #next = 0;
  /** Tokens that the open branches follow: the prefix, and the suffix of a branch that is read like it (`isLong`). */
  #trunk: readonly number[];
  /** Number of tokens of the trunk that the sequence holds or the planned run reads. */
  #prefilled = 0;

  constructor(spec: JobSpec, submission: Submission, parts: JobParts) {
    this.spec = spec;
    this.submission = submission;
    this.#parts = parts;
    this.#trunk = spec.prefix;
    const { contextLength, vocabSize } = parts;
    const budget = new TokenBudget(spec.budget);
    this.#contexts = spec.branches.map((branch, index) => ({
      prefix: spec.prefix,
      contextLength,
      vocabSize,
      alone: false,
      share: branch.unmetered ? budget.unmetered(branch.maxTokens) : budget.addShare(branch.maxTokens),
      onToken: (token) => spec.onToken?.(index, token),
      onForced: (tokens) => spec.onForced?.(index, tokens),
    }));
  }

  /** Name of who sent the job; empty if the caller has none. */
  get caller(): string {
    return this.spec.caller ?? '';
  }

  /** True if the job has batch priority. Interactive jobs go first. */
  get isBatch(): boolean {
    return this.spec.priority === 'batch';
  }

  /** True if the branches are computed apart from their prefix, so that they do not depend on each other in any bit. */
  get apart(): boolean {
    return this.#parts.apart && this.spec.apart === true && this.spec.prefix.length > 0;
  }

  /** True if the next run is one of branches that are apart, which the model computes after those of all other jobs. */
  get runsApart(): boolean {
    const readsTrunk = this.#prefilled < this.#trunk.length;
    return this.apart && !readsTrunk && !this.#isInLine;
  }

  /** True if an open branch is read like a prompt (`BranchRun.inLine`). */
  get #isInLine(): boolean {
    return this.#group.some((branch) => this.#branch(branch).inLine);
  }

  /** Number of prefix tokens that the KV cache did not hold when the job started, and that the job must prefill. */
  get unread(): number {
    return this.spec.prefix.length - this.cachedTokens;
  }

  /** Starts the job on a sequence that holds the first `cached` tokens of its prefix. */
  start({ sequence, cached }: { sequence: Sequence; cached: number }, now: number): void {
    this.sequence = sequence;
    // A run of one token uses other kernels, so a prefix never ends in one; with states, which do not go back, more
    // cells are added (`PackedForward`).
    const { length } = this.spec.prefix;
    const goesBack = this.apart && cached === length - 1 && !sequence.snapshots.needed;
    const known = goesBack ? Math.max(0, cached - 1) : cached;
    sequence.truncate(known);
    this.cachedTokens = known;
    this.#prefilled = known;
    this.startedAt = now;
    this.#branch(0);
    this.status = 'running';
  }

  /** Returns a branch before its first token. One of several gets a copy of its grammar, because it may begin again. */
  #unbegun(index: number): BranchRun {
    const { branches } = this.spec;
    const spec = at(branches, index);
    const constraint = branches.length === 1 ? spec.constraint : (spec.constraint?.fork() ?? null);
    const context = at(this.#contexts, index);
    if (!this.#isLong(index)) return new BranchRun({ ...spec, constraint }, context);
    const suffix = spec.suffix.slice(-1);
    return new BranchRun({ ...spec, suffix, constraint }, { ...context, prefix: this.#trunkOf(index), alone: true });
  }

  /**
   * Tells whether the suffix of a branch, all but its last token, is read like the prefix (`Limits.longSuffix`).
   * Depends on the branch alone, so its answer does not depend on others.
   */
  #isLong(index: number): boolean {
    const { suffix, read } = at(this.spec.branches, index);
    return this.apart && !read && suffix.length >= this.#parts.limits.longSuffix;
  }

  #trunkOf(index: number): readonly number[] {
    const { prefix, branches } = this.spec;
    return this.#isLong(index) ? [...prefix, ...at(branches, index).suffix.slice(0, -1)] : prefix;
  }

  /**
   * Opens the next group of branches if none is open, as many as the limits allow, after discarding the cells of the
   * last group. Returns false if the job is finished.
   */
  advance(): boolean {
    if (this.#group.length > 0) return true;
    this.#closeTrunk();
    if (this.#next === this.spec.branches.length) {
      this.#giveBackRoom();
      return false;
    }
    if (this.#prefilled === this.spec.prefix.length) this.sequence.truncate(this.spec.prefix.length);
    this.sequence.branches = null;
    this.decodes = false;
    let tokens = 0;
    while (this.#next < this.spec.branches.length && this.#group.length < this.#parts.limits.group) {
      const run = this.#branch(this.#next);
      const isLong = this.#isLong(this.#next);
      if (isLong && this.#group.length > 0) break;
      if (run.waiting === 0 && !run.done) run.start();
      if (this.#group.length > 0 && tokens + run.waiting > this.#parts.limits.groupTokens) break;
      const before = this.#group.at(-1);
      // A question that is asked in two orders of its options has the same words before the options.
      if (before !== undefined && !run.done && !this.apart) run.shareBeginning(this.#branch(before));
      if (!run.done) this.#group.push(this.#next);
      tokens += run.waiting;
      this.#next++;
      if (isLong && !run.done) {
        this.#trunk = this.#trunkOf(this.#next - 1);
        break;
      }
    }
    return this.#group.length > 0;
  }

  /** Discards the suffix that was read like the prefix, and its cells. */
  #closeTrunk(): void {
    const { sequence, spec } = this;
    if (this.#trunk === spec.prefix) return;
    this.#trunk = spec.prefix;
    this.#prefilled = spec.prefix.length;
    sequence.truncate(this.#prefilled);
    sequence.branches = null;
  }

  /** Gives back the memory of suffixes that were read like the prefix, if it is more than the copy that this takes. */
  #giveBackRoom(): void {
    const { sequence, spec } = this;
    const { length } = spec.prefix;
    if (this.longestTrunk > length && sequence.room > 2 * length) sequence.resize(length, length);
  }

  /** Number of cells of the longest trunk. */
  get longestTrunk(): number {
    const { prefix, branches } = this.spec;
    const suffixes = branches.map(({ suffix }, index) => (this.#isLong(index) ? suffix.length - 1 : 0));
    return prefix.length + Math.max(0, ...suffixes);
  }

  /**
   * Number of new tokens that must run before all open branches can choose again: one or a few per branch while they
   * decode.
   */
  get waitingTokens(): number {
    return this.#trunk.length - this.#prefilled + this.#waiting;
  }

  /**
   * Plans the next run and appends its cells to the sequence: up to 1.5 times `tokens` new tokens, and `mostRows` rows
   * of logits. If recurrent states are missing, plans only a replay of earlier cells; the next call plans the new
   * tokens. `advance` must have returned true before.
   */
  planRun(tokens: number, mostRows: number): void {
    this.plan = this.#plan(tokens, mostRows);
    this.newTokens = this.sequence.length - this.plan.start;
  }

  #plan(tokens: number, mostRows: number): Plan {
    this.#postpone();
    const replay = this.#planReplay();
    if (replay) return replay;
    const trunk = this.#trunk;
    const start = this.sequence.length;
    const readsTrunk = this.#prefilled < trunk.length;
    const end = start + this.#runLength(tokens, mostRows);
    const inLine = !this.apart || this.#isInLine;
    // Branches that are apart need buffers with the cells of the trunk and no others (`Sequence.openBranches`).
    if (this.apart && readsTrunk) this.#parts.kv.reserve(this.sequence, trunk.length, { exact: true });
    else if (inLine) this.#parts.kv.reserve(this.sequence, end);
    while (this.#prefilled < trunk.length && this.sequence.length < end) {
      const token = at(trunk, this.#prefilled++);
      this.sequence.append(token, this.sequence.length - 1, inImage(token, this.spec.media));
    }
    const rows: PlannedRow[] = [];
    // The prefix of a longer trunk, too: other branches follow it.
    const ends = new Set([this.spec.prefix.length, this.#prefilled]);
    const keep = [...ends].filter((end) => end > start && end <= this.#prefilled).map((end) => end - 1);
    if (this.#prefilled < trunk.length || (readsTrunk && this.apart)) return { start, rows, keep };
    if (!inLine) this.#reserveBranches(end - start);
    for (const branch of this.#group) {
      const room = end - this.sequence.length;
      const found = this.#branch(branch).feed(this.sequence, room, mostRows - rows.length);
      for (const { cell, node } of found) rows.push({ cell, node, branch });
    }
    const growing = this.#group.flatMap((branch) => this.#branch(branch).growing);
    append(keep, new Set(growing.filter((cell) => cell >= start)));
    return { start, rows, keep };
  }

  /**
   * Appends up to `tokens` drafted tokens to the sequence, and the logits that they need to the plan. Does nothing if
   * the plan does not contain all other tokens of the open branches, and for models with recurrent layers, because
   * their states cannot be rolled back.
   */
  draft(tokens: number): void {
    const { sequence, plan } = this;
    if (plan.rows.length === 0 || plan.replayed || sequence.snapshots.needed || this.waitingTokens > 0) return;
    const room = Math.min(tokens, this.#freeCells, this.#parts.limits.rows - plan.rows.length);
    const each = Math.min(MOST_DRAFTED, Math.floor(room / this.#group.length));
    if (each <= 0) return;
    const rows = this.#group.flatMap((branch) =>
      this.#branch(branch)
        .draft(sequence, each)
        .map((row) => ({ ...row, branch })),
    );
    this.plan = { ...plan, rows: [...plan.rows, ...rows] };
  }

  /**
   * Closes the last open branches if all of them together would need too many cells (`Limits.cells`). They begin again
   * in a later group, and choose the same tokens then.
   */
  #postpone(): void {
    const most = this.spec.prefix.length + this.#parts.limits.cells;
    while (this.#group.length > 1 && this.#neededCells > most) {
      this.#next = this.#group.pop()!;
      at(this.#contexts, this.#next).share.used = 0;
      this.#branches[this.#next] = this.#unbegun(this.#next);
    }
  }

  /** Number of cells that all open branches together may have beyond those of the plan. */
  get #freeCells(): number {
    const { branches, capacity, length } = this.sequence;
    if (!branches) return capacity - length;
    const longest = Math.max(...this.#group.map((branch) => this.#branch(branch).cells.size));
    return this.#group.length * (branches.length - 1 - longest);
  }

  /**
   * Makes room for the next `tokens` tokens of the open branches, whose KV is apart from that of the prefix. Attention
   * computes all cells that there is room for, so a long branch gets its room bit by bit.
   */
  #reserveBranches(tokens: number): void {
    const runs = this.#group.map((branch) => this.#branch(branch));
    const begun = runs.flatMap(({ cells: { first } }) => first ?? []);
    const needed = runs.map(({ cells: { size }, waiting }) => size - Math.max(0, waiting - tokens));
    this.#parts.kv.reserveBranches(this.sequence, begun, runs.length, Math.max(...needed));
  }

  /** Number of cells that the sequence needs for what it has and for all tokens that wait. */
  get #neededCells(): number {
    if (!this.apart) return this.sequence.length + this.waitingTokens;
    const longest = Math.max(...this.#group.map((branch) => this.#branch(branch).cells.size));
    return this.spec.prefix.length + this.#group.length * cellsFor(longest);
  }

  /** Plans the replay that the next run of the branches needs (`planReplay`); null if it needs none. */
  #planReplay(): Plan | null {
    const { sequence } = this;
    if (!sequence.snapshots.needed || this.#prefilled < this.#trunk.length) return null;
    const heads = this.#group.flatMap((branch) => this.#branch(branch).heads);
    return planReplay(sequence, heads, (cells) => this.#parts.kv.reserve(sequence, cells));
  }

  /**
   * Returns the number of tokens of the next run, at most 1.5 times `tokens`. Splits what is left into runs of similar
   * length, because a short last run would read all weights for a few tokens.
   */
  #runLength(tokens: number, mostRows: number): number {
    const unread = this.#trunk.length - this.#prefilled;
    // Branches that are apart need a run of their own, so the prefix takes as few as it can, none of a single token.
    // An even number of rows costs least (`Forward.rowBlock`).
    if (this.apart && unread > 0) {
      const length = Math.ceil(unread / Math.ceil(unread / Math.max(3, 1.5 * tokens)));
      return inWholeBlocks(length < unread ? length - (length % 2) : length);
    }
    const left = this.waitingTokens;
    // A run of one token uses other kernels, so a prompt is never cut so that one token of several is left alone.
    const most = Math.max(2, tokens);
    const rows = this.#group.reduce((sum, branch) => sum + this.#branch(branch).unread, 0);
    // Tokens of options, which all need a row.
    const byRows = rows === left ? Math.ceil(rows / mostRows) : 1;
    const length = Math.ceil(left / Math.max(1, Math.ceil(left / most - 0.5), byRows));
    return this.apart ? inWholeBlocks(length) : length;
  }

  /** Number of tokens of the open branches that have not been fed to the model yet. */
  get #waiting(): number {
    return this.#group.reduce((sum, branch) => sum + this.#branch(branch).waiting, 0);
  }

  /** Passes the logits of the planned run to the branches that requested them. Removes the branches that are done. */
  deliver(logits: Float32Array): void {
    const { plan } = this;
    const { vocabSize } = this.#parts;
    if (plan.replayed) {
      keepReplayed(this.sequence, plan, plan.replayed);
      return;
    }
    if (plan.rows.length > 0) this.decodes = true;
    for (const [index, { branch, node }] of plan.rows.entries()) {
      const run = this.#branch(branch);
      run.deliver(node, logits.subarray(index * vocabSize, (index + 1) * vocabSize));
      const rollback = run.takeRollback();
      if (rollback !== null && this.#group.length === 1) this.sequence.truncate(rollback);
    }
    this.#dropDrafts();
    this.#group = this.#group.filter((branch) => !this.#branch(branch).done);
    this.#dropSnapshots();
  }

  /**
   * Frees the KV cells of rejected draft tokens at the end of the sequence. A rejected cell with a used cell after it
   * stays.
   */
  #dropDrafts(): void {
    const rejected = new Set(this.#group.flatMap((branch) => this.#branch(branch).takeRejected()));
    let { length } = this.sequence;
    while (rejected.has(length - 1)) length--;
    this.sequence.truncate(length);
  }

  /** Deletes all snapshots but those that an open branch continues from or that a later job can use. */
  #dropSnapshots(): void {
    const { snapshots } = this.sequence;
    if (!snapshots.needed) return;
    const wanted = snapshots.worthKeeping(Math.min(this.#prefilled, this.spec.prefix.length));
    wanted.add(this.#prefilled - 1);
    for (const branch of this.#group) for (const cell of this.#branch(branch).heads) wanted.add(cell);
    if (this.spec.branches.length === 1) wanted.add(Math.max(...snapshots.cells));
    snapshots.keepOnly((cell) => wanted.has(cell));
  }

  #branch(index: number): BranchRun {
    this.#branches[index] ??= this.#unbegun(index);
    return this.#branches[index];
  }

  /** Answers the job, whose branches are all done. */
  finish(now: number): void {
    const promptDone = this.promptDoneAt ?? now;
    this.status = 'done';
    this.submission.resolve({
      branches: this.spec.branches.map((_, index) => this.#branch(index).result()),
      promptTokens: promptTokens(this.spec),
      cachedTokens: this.cachedTokens,
      queueMs: this.startedAt - this.submission.queuedAt,
      promptMs: promptDone - this.startedAt,
      generationMs: now - promptDone,
    });
  }

  /** Ends the job with an error. */
  fail(error: unknown): void {
    this.status = 'done';
    this.submission.reject(error);
  }

  /**
   * Number of cells at the beginning that a later request may reuse: the prefix; after a single branch also its answer,
   * which the next request of a chat repeats.
   */
  get reusablePrefixLength(): number {
    return this.spec.branches.length === 1 && !this.apart
      ? this.sequence.trunkLength
      : Math.min(this.spec.prefix.length, this.sequence.trunkLength);
  }
}

/**
 * Returns a number of tokens for a run, less a few if a single one would be left over after whole blocks
 * (`rowsMissing`).
 */
function inWholeBlocks(tokens: number): number {
  return rowsMissing(tokens, 1) > 0 ? tokens - 3 : tokens;
}

/** Returns the number of prompt tokens: the shared prefix once, and the suffix of every branch. */
function promptTokens({ branches, prefix }: JobSpec): number {
  return branches.reduce((sum, branch) => sum + branch.suffix.length, prefix.length);
}

/**
 * Plans a run that recomputes the recurrent states after the cells that branches continue from, where the sequence has
 * no snapshot of them. Scoring options stores no snapshots, because few options are continued. Appends copies of the
 * cells since the last snapshot to the sequence for this run; `keepReplayed` removes them. Returns null if no snapshot
 * is missing.
 *
 * @param heads cells that branches continue from
 * @param reserve grows the sequence to this number of cells in all
 */
export function planReplay(sequence: Sequence, heads: Iterable<number>, reserve: (cells: number) => void): Plan | null {
  const { snapshots } = sequence;
  const replayed = [...new Set(heads)].filter((cell) => !snapshots.at(cell));
  if (replayed.length === 0) return null;
  const paths = replayed.map((end) => {
    const path: number[] = [];
    let cell = end;
    for (; cell >= 0 && !snapshots.at(cell); cell = at(sequence.parents, cell)) path.push(cell);
    return { root: cell, path: path.reverse() };
  });
  const start = sequence.length;
  // Branches that are apart compute their own cells again.
  if (!sequence.branches) reserve(paths.reduce((sum, { path }) => sum + path.length, start));
  const keep = paths.map(({ root, path }) => path.reduce((parent, cell) => sequence.appendCopy(cell, parent), root));
  return { start, rows: [], keep, replayed };
}

/**
 * Stores the states of a replay as snapshots of the original cells, and removes the copies from the sequence. Throws
 * `internal_error` if the run stored no states for one of them.
 *
 * @param replayed original cells (`Plan.replayed`)
 */
export function keepReplayed(sequence: Sequence, { start, keep }: Plan, replayed: readonly number[]): void {
  for (const [index, cell] of replayed.entries()) {
    const snapshot = sequence.snapshots.at(at(keep, index));
    if (!snapshot)
      throw new AssayError(
        'internal_error',
        `The run stored no states of cell ${cell}. Search the log for the request id.`,
      );
    sequence.snapshots.set(cell, snapshot);
  }
  sequence.truncate(start);
}
