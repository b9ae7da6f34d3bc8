import type { FairShares } from '../../../lib/limits/fair-shares.ts';
import type { Job } from '../job.ts';
import { FEWEST_ROWS, type Limits } from './limits.ts';

/**
 * Jobs with at most this many tokens left to feed to the model are in every run, because so few tokens cost little
 * compared with reading the weights.
 */
const SHORT = 64;
/**
 * Prompts with more uncached tokens get the small share of a run that keeps streams smooth (`PromptPace`). Shorter
 * prompts get more, because their own answer is wanted soon.
 */
const LONG_PROMPT = 1024;
/** While interactive jobs run, batch jobs take part in one of this many runs. In all others they pause. */
const RUNS_PER_BATCH_TURN = 4;
/**
 * Number of tokens that batch jobs together feed in a run, because an interactive request that comes meanwhile waits
 * for its end. Such a run is about as fast per token as a longer one.
 */
const BATCH_TOKENS = 64;
/** The same while interactive jobs run, or ran within `RECENT_MS`. */
const BATCH_TOKENS_BESIDE = 16;
/** Milliseconds after an interactive job for which the next one is expected. */
const RECENT_MS = 10_000;
/**
 * Number of tokens that the decoding jobs of one caller may feed in a run while other callers have jobs; one job may
 * always decode. So few rows cost about as much as reading the weights, which halves the speed of the others at most.
 */
const SHARED_DECODE_TOKENS = 16;
/**
 * Maximum number of prompt tokens in a run of a caller that got much less than all others (`AHEAD_MS`): its request is
 * new, so it need not wait for their streams, and their long prompts wait for it. Fewer after a long beginning.
 */
const FIRST_PROMPT_TOKENS = 64;
/** Milliseconds of several runs: callers that get equal shares are never so far apart. */
const AHEAD_MS = 128;
/**
 * Number of tokens with which a job of another caller may take part in the runs that read such a prompt: the next token
 * of a chat, but not options or the branches of an extraction, which make such a run several times as long.
 */
const BESIDE_FIRST_TOKENS = 2;
/**
 * Bounds what other runs read of a prompt while several callers have jobs, or had some within the last minute: as many
 * tokens as take `ms`, or as cost as much as the first `tokens` of a prompt. Runs stay so short that a request of
 * another caller, which must wait for the end of the run, waits little; so they have fewer tokens after a long
 * beginning, where attention makes a token cost several times as much. Of long prompts they read more at once: with
 * half as many tokens, these would take a fifth more time.
 */
const SHARED = { tokens: 16, ms: 16 };
const SHARED_OF_LONG = { tokens: 32, ms: 25 };
/**
 * Number of prompt tokens that such a run may have in any case while no other caller has a job with a short prompt, or
 * had one lately. After a long beginning, few tokens cost nearly as much as these, and would only be read slowly.
 */
const UNHURRIED_PROMPT_TOKENS = 64;

interface PlannerOptions {
  limits: Limits;
  /** Number of sequences that one run of the model accepts. */
  slots: number;
  shares: FairShares;
  now(): number;
  /** Ends a job for which planning threw `cause`. */
  fail(job: Job, cause: unknown): void;
}

/** Decides which of the running jobs take part in each run of the model, and with how many tokens. */
export class BatchPlanner {
  readonly #options: PlannerOptions;
  readonly #pace = new PromptPace();
  /** Number of plans since batch jobs last took part, alone or beside interactive ones. */
  #pausedRuns = 0;
  /** True if the last run was of branches that are apart from their prefix. */
  #lastWasApart = false;
  /** Time of the last plan with interactive jobs. */
  #interactiveAt = Number.NEGATIVE_INFINITY;
  /** Time of the last plan with a job with a short prompt of each caller that had one lately. */
  readonly #hurriedAt = new Map<string, number>();

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /**
   * Plans one run and appends its new cells to the sequences. Batch jobs pause in most runs while interactive jobs run.
   * Only the first `slots` jobs take part; a job whose planning throws is ended. Jobs with at most `SHORT` tokens to
   * feed, such as decoding jobs, come first; prompts share the rest of `limits.tokens`. If a job decodes, prompts get
   * only `tokensBesideDecode`, and long ones at most what `PromptPace` allows. If a long prompt waits beside decoding
   * jobs and `PromptPace` needs the time of a run that only decodes, no prompt gets any. Batch jobs together get
   * `BATCH_TOKENS`; a second one takes part only whole, because a part of a few tokens costs about a run of its own.
   *
   * If several callers have jobs, those of the callers that got least come first, and each caller gets a bounded number
   * of tokens: `SHARED_DECODE_TOKENS` for jobs with few tokens to feed, but at least one such job, and
   * `PromptPace.shared` for prompts, or `PromptPace.first` if it got much less than all others, and
   * `UNHURRIED_PROMPT_TOKENS` in any case if nobody else hurries. Beside the prompts of the caller that got least,
   * others decode single tokens, and read only short prompts that fit into what they get. Branches that are apart and
   * other jobs then have runs in turns, because the model computes one after the other. Jobs after long beginnings have
   * runs of their own then (`PromptPace.fits`).
   *
   * @param running jobs that hold a sequence, the least recently served first
   */
  plan(running: readonly Job[]): Job[] {
    const { limits, slots, shares, now } = this.#options;
    const shared = shares.callers(now()) > 1;
    const inTurn = this.#inTurn(running, shared);
    const candidates = (shared ? this.#ofOneKind(inTurn) : inTurn).slice(0, slots);
    const short = candidates.filter(({ waitingTokens }) => waitingTokens <= SHORT);
    const long = candidates.filter(({ waitingTokens }) => waitingTokens > SHORT);
    const spent = new Map<string, number>();
    const batch: Job[] = [];
    if (running.some(({ isBatch }) => !isBatch)) this.#interactiveAt = now();
    for (const { caller, unread } of running) if (unread <= LONG_PROMPT) this.#hurriedAt.set(caller, now());
    for (const [caller, at] of this.#hurriedAt) if (now() - at >= RECENT_MS) this.#hurriedAt.delete(caller);
    let batchTokens = now() - this.#interactiveAt < RECENT_MS ? BATCH_TOKENS_BESIDE : BATCH_TOKENS;
    const plan = (job: Job, tokens: number): number => {
      const part = job.isBatch ? Math.min(tokens, batchTokens) : tokens;
      const rows = Math.max(FEWEST_ROWS, limits.rows - rowsOf(batch));
      if (job.isBatch && part < job.waitingTokens && batch.some(isBatch)) return 0;
      if (shared && batch.length > 0 && !this.#pace.fits(cellsIn(batch) + cellsOf(job))) return 0;
      if (part <= 0 || !this.#planJob(job, part, rows)) return 0;
      if (job.isBatch) batchTokens -= job.newTokens;
      batch.push(job);
      spent.set(job.caller, (spent.get(job.caller) ?? 0) + job.newTokens);
      return job.newTokens;
    };
    // The caller that got least is first in line.
    const first = shared && candidates.some(({ caller }) => caller !== candidates[0]?.caller) ? candidates[0] : null;
    const others = candidates.filter(({ caller }) => caller !== first?.caller).map(({ caller }) => shares.used(caller));
    const isAhead = first && Math.min(...others) - shares.used(first.caller) > AHEAD_MS;
    const most = (job: Job): number => {
      const hurries = [...this.#hurriedAt.keys()].some((caller) => caller !== job.caller);
      const ahead = isAhead && job.caller === first?.caller;
      const paced = ahead ? this.#pace.first(cellsOf(job)) : this.#pace.shared(job);
      return hurries ? paced : Math.max(UNHURRIED_PROMPT_TOKENS, paced);
    };
    /** Returns how many tokens the job may feed beside those of its caller that are planned already. */
    const free = (job: Job): number => {
      const taken = batch.filter(({ caller }) => caller === job.caller).map((one) => one.newTokens / most(one));
      return Math.floor(most(job) * (1 - taken.reduce((sum, part) => sum + part, 0)));
    };
    const reading = candidates.some((job) => job.caller === first?.caller && !isDecode(job));
    const crowds = (job: Job): boolean => {
      if (!reading || job.caller === first?.caller) return false;
      if (isDecode(job)) return job.waitingTokens > BESIDE_FIRST_TOKENS;
      return tokensOf(batch) + job.waitingTokens > this.#pace.shared(job);
    };
    for (const job of short) {
      const before = spent.get(job.caller);
      if (shared && before && before + job.waitingTokens > SHARED_DECODE_TOKENS) continue;
      if (crowds(job)) continue;
      plan(job, shared ? Math.min(SHORT, most(job)) : SHORT);
    }
    const decodes = batch.some(isDecode);
    const paced = ({ unread }: Job): boolean => decodes && unread > LONG_PROMPT;
    if (this.#pace.needsDecodeRun && long.some(paced) && batch.every(isDecode)) return this.#withDrafts(batch);
    const used = tokensOf(batch);
    let left = decodes ? limits.tokensBesideDecode : Math.max(limits.tokensBesideDecode, limits.tokens - used);
    // Its own streams, if it has any, stay smooth.
    const decoding = new Set(batch.filter(isDecode).map(({ caller }) => caller));
    for (const job of long) {
      const { caller } = job;
      if (caller === first?.caller && !decoding.has(caller)) {
        if (free(job) > 0) plan(job, free(job));
        continue;
      }
      if (left <= 0 || crowds(job)) continue;
      const share = shared ? free(job) : left;
      if (share <= 0) continue;
      left -= plan(job, Math.min(left, share, paced(job) ? this.#pace.tokens : left));
    }
    return this.#withDrafts(batch);
  }

  /**
   * Records how long a run took, in milliseconds; the pace of long prompts depends on it. Must be called before the
   * logits of the run are delivered, because delivery turns prompts into decoding jobs.
   */
  measured(batch: readonly Job[], ms: number): void {
    const prompts = batch.filter((job) => !isDecode(job));
    const promptTokens = tokensOf(prompts);
    const read = prompts.reduce((sum, job) => sum + job.newTokens * cellsOf(job), 0);
    const cells = promptTokens > 0 ? read / promptTokens : cellsIn(batch);
    this.#pace.add({ ms, decodes: prompts.length < batch.length, tokens: tokensOf(batch), promptTokens, cells });
  }

  /**
   * Returns the jobs that may take part in the next run, in the order in which they get tokens. While interactive jobs
   * run, batch jobs take part in every fourth run only, where their prompts come first.
   */
  #inTurn(running: readonly Job[], shared: boolean): readonly Job[] {
    const { shares } = this.#options;
    const used = ({ caller }: Job) => shares.used(caller);
    const inOrder = (jobs: readonly Job[]) => (shared ? [...jobs].sort((a, b) => used(a) - used(b)) : jobs);
    const interactive = inOrder(running.filter(({ isBatch }) => !isBatch));
    const batch = inOrder(running.filter(({ isBatch }) => isBatch));
    // A short request so shares none of its runs, if batch jobs had one before it.
    if (interactive.length === 0) this.#pausedRuns = 0;
    if (interactive.length === 0 || batch.length === 0) return [...interactive, ...batch];
    this.#pausedRuns = (this.#pausedRuns + 1) % RUNS_PER_BATCH_TURN;
    return this.#pausedRuns === 0 ? [...batch, ...interactive] : interactive;
  }

  /**
   * Returns the jobs that the model can compute in one go: those whose branches are apart from their prefix, or all
   * others. If there are both, the kind that had no run last; but that of the first job while it has yielded no row, so
   * that the short request of a caller that got least waits for no other run.
   */
  #ofOneKind(jobs: readonly Job[]): readonly Job[] {
    const [first] = jobs;
    const both = jobs.some(({ runsApart }) => runsApart) && jobs.some(({ runsApart }) => !runsApart);
    const several = jobs.some(({ caller }) => caller !== first?.caller);
    const apart =
      first !== undefined && (!both || (several && !isDecode(first))) ? first.runsApart : !this.#lastWasApart;
    this.#lastWasApart = apart;
    return jobs.filter(({ runsApart }) => runsApart === apart);
  }

  /**
   * Plans one job's part of a run with at most 1.5 times `tokens` new tokens and `rows` rows of logits. If planning
   * throws, ends the job and returns false.
   */
  #planJob(job: Job, tokens: number, rows: number): boolean {
    try {
      job.planRun(tokens, rows);
      return true;
    } catch (cause) {
      this.#options.fail(job, cause);
      return false;
    }
  }

  /**
   * Adds drafted tokens to the plans of the batch. The jobs share evenly the rows of logits that are left: `draftRows`
   * less those that the batch already needs.
   */
  #withDrafts(batch: Job[]): Job[] {
    let left = this.#options.limits.draftRows - rowsOf(batch);
    for (const [index, job] of batch.entries()) {
      const before = job.plan.rows.length;
      job.draft(Math.floor(left / (batch.length - index)));
      left -= job.plan.rows.length - before;
    }
    return batch;
  }
}

/** Tells whether the job has read its prompt and the questions of its open branches, and now decodes. */
function isDecode({ decodes }: Job): boolean {
  return decodes;
}

function rowsOf(batch: readonly Job[]): number {
  return batch.reduce((sum, { plan }) => sum + plan.rows.length, 0);
}

function isBatch(job: Job): boolean {
  return job.isBatch;
}

/** Returns the number of cells that the next token of a job attends to, or of its prefix for branches. */
function cellsOf({ sequence }: Pick<Job, 'sequence'>): number {
  return sequence.length;
}

function tokensOf(batch: readonly Job[]): number {
  return batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
}

/** Returns the number of cells that the jobs attend to together. */
function cellsIn(batch: readonly Job[]): number {
  return batch.reduce((sum, job) => sum + cellsOf(job), 0);
}

/**
 * Longest time to aim for in a run that decodes and reads prompt tokens, as a multiple of a run that only decodes.
 * Below the goal of 2, because single runs take longer than estimated.
 */
const SLOWDOWN = 1.7;
/** Minimum number of prompt tokens of a run, so that a long prompt is read before the deadline of its request. */
const FEWEST = 8;
/**
 * Number of consecutive runs with prompt tokens, after which one run only decodes. The time of such a run must be
 * measured again now and then, because it changes with the jobs.
 */
const MIXED_RUNS = 32;
/** Weight of the newest measurement in the running averages. */
const NEWEST = 0.25;

/** Describes a run of the model after it has ended. */
export interface MeasuredRun {
  ms: number;
  /** True if the run decoded at least one job. */
  decodes: boolean;
  tokens: number;
  /** Number of prompt tokens among them. */
  promptTokens: number;
  /** Mean number of cells that these tokens attend to; in a run that only decodes, that of all jobs together. */
  cells: number;
}

/**
 * Estimates how many prompt tokens fit into a run: beside decoding jobs, so that the gap between two tokens of these
 * jobs is at most about twice as long as usual, and while several callers have jobs. The estimate follows the measured
 * runs, because the cost of a token grows with the prompt and differs between machines.
 */
export class PromptPace {
  /** Average milliseconds of runs that only decode; undefined before the first. */
  #decodeMs: number | undefined;
  /** Average milliseconds that one prompt token adds to a run; undefined before the first. */
  #tokenMs: number | undefined;
  /** Milliseconds of a token in runs that only read prompts, by the cells that it attends to. */
  readonly #readMs = new CostByCells();
  /** Milliseconds of runs that only decode a few tokens, by the cells of their jobs. */
  readonly #runMs = new CostByCells();
  /** Number of runs with prompt tokens since the last run that only decoded. */
  #mixedRuns = 0;

  /** True if the next run should only decode, so that its time is measured. */
  get needsDecodeRun(): boolean {
    return this.#decodeMs === undefined || this.#mixedRuns >= MIXED_RUNS;
  }

  /** Number of prompt tokens for the next run that also decodes; infinite until enough runs have been measured. */
  get tokens(): number {
    if (!this.#decodeMs || !this.#tokenMs) return Number.POSITIVE_INFINITY;
    return Math.max(FEWEST, Math.floor(((SLOWDOWN - 1) * this.#decodeMs) / this.#tokenMs));
  }

  /** Returns the number of prompt tokens of a job for a run while several callers have jobs. */
  shared(job: Pick<Job, 'unread' | 'sequence'>): number {
    return this.#most(cellsOf(job), job.unread > LONG_PROMPT ? SHARED_OF_LONG : SHARED);
  }

  /** Returns the same for the caller that got least, after so many cells. */
  first(cells: number): number {
    return this.#most(cells, { ...SHARED, tokens: FIRST_PROMPT_TOKENS });
  }

  #most(cells: number, { tokens, ms }: { tokens: number; ms: number }): number {
    const [begin, here] = [this.#readMs.at(0), this.#readMs.at(cells)];
    // A clock may not tell the time of short runs.
    if (!begin || !here) return tokens;
    return Math.max(FEWEST, Math.floor(Math.max(tokens * begin, ms) / here));
  }

  /**
   * Tells whether a run of jobs that attend to so many cells together takes at most `SHARED_OF_LONG.ms`, or twice as
   * long as one that reads little more than the weights.
   */
  fits(cells: number): boolean {
    const [least, ms] = [this.#runMs.at(0), this.#runMs.at(cells)];
    return !least || !ms || ms <= Math.max(SHARED_OF_LONG.ms, 2 * least);
  }

  /** Updates the estimates with a run. */
  add({ ms, decodes, tokens, promptTokens, cells }: MeasuredRun): void {
    if (!decodes) {
      // Fewer tokens take the time of a run rather than their own.
      if (promptTokens >= FEWEST) this.#readMs.add(cells, ms / promptTokens);
      return;
    }
    this.#mixedRuns = promptTokens === 0 ? 0 : this.#mixedRuns + 1;
    if (promptTokens === 0) {
      this.#decodeMs = average(this.#decodeMs, ms);
      if (tokens <= SHARED_DECODE_TOKENS) this.#runMs.add(cells, ms);
    } else if (this.#decodeMs !== undefined) {
      this.#tokenMs = average(this.#tokenMs, Math.max(0, ms - this.#decodeMs) / promptTokens);
    }
  }
}

/** Cells of the first range of `CostByCells`; each further one is as long as all before it. */
const FIRST_RANGE = 256;

/**
 * Estimates a cost that grows with a number of cells from earlier ones. Keeps the average of each range of cells, so
 * that many short requests do not make it forget what comes after a long beginning.
 */
class CostByCells {
  readonly #ranges: { cells: number; ms: number }[] = [];

  add(cells: number, ms: number): void {
    const range = Math.ceil(Math.log2(Math.max(1, (cells + 1) / FIRST_RANGE)));
    const before = this.#ranges[range];
    this.#ranges[range] = { cells: average(before?.cells, cells), ms: average(before?.ms, ms) };
  }

  /** Returns the milliseconds for so many cells; undefined before the first measurement. */
  at(cells: number): number | undefined {
    // Ranges without a measurement are holes, which `filter` skips.
    const known = this.#ranges.filter(() => true);
    const above = known.findIndex((range) => range.cells >= cells);
    const next = Math.max(1, above < 0 ? known.length - 1 : above);
    const [from, to] = [known[next - 1], known[next]];
    if (!from || !to) return from?.ms;
    const slope = Math.max(0, (to.ms - from.ms) / (to.cells - from.cells));
    // The line through costs after long beginnings may reach zero before it reaches short ones.
    return Math.max(from.ms / 16, from.ms + slope * (cells - from.cells));
  }
}

function average(before: number | undefined, newest: number): number {
  return before === undefined ? newest : before + NEWEST * (newest - before);
}
