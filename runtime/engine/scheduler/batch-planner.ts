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
/** Number of tokens with which a decoding job takes part in every run, such as the next token of a chat. */
const STREAM_TOKENS = 2;
/**
 * Milliseconds that a run takes in which several callers have jobs, or had some within the last minute, because a
 * request of another caller must wait for its end. Two cores read about 60 tokens with a small model in this time.
 */
const SHARED_MS = 25;
/** Number of tokens at the begin of a prompt that such a run reads, however long they take. */
const SHARED_TOKENS = 32;
/** The same for the caller that got least while others have jobs: longer runs are faster, and its request is new. */
const FIRST_TOKENS = 64;
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
   * If several callers have jobs, the run takes about `SHARED_MS`, which all of them share: streams decode their next
   * token, the caller that got least comes next, and the others get what it leaves. While it reads a prompt, they read
   * only prompts that fit in whole. Branches that are apart and other jobs then have runs in turns, because the model
   * computes them one after the other.
   *
   * @param running jobs that hold a sequence, the least recently served first
   */
  plan(running: readonly Job[]): Job[] {
    const { limits, slots, shares, now } = this.#options;
    const shared = shares.callers(now()) > 1;
    const inTurn = this.#inTurn(running, shared);
    const candidates = (shared ? this.#ofOneKind(inTurn) : inTurn).slice(0, slots);
    if (running.some(({ isBatch }) => !isBatch)) this.#interactiveAt = now();
    const batch: Job[] = [];
    let batchTokens = now() - this.#interactiveAt < RECENT_MS ? BATCH_TOKENS_BESIDE : BATCH_TOKENS;
    const add = (job: Job, tokens: number): number => {
      const most = job.isBatch ? Math.min(tokens, batchTokens) : tokens;
      const rows = Math.max(FEWEST_ROWS, limits.rows - rowsOf(batch));
      if (job.isBatch && most < job.waitingTokens && batch.some(isBatch)) return 0;
      if (most <= 0 || !this.#planJob(job, most, rows)) return 0;
      if (job.isBatch) batchTokens -= job.newTokens;
      batch.push(job);
      return job.newTokens;
    };
    if (shared) this.#share(candidates, batch, add);
    else this.#fill(candidates, batch, add);
    return this.#withDrafts(batch);
  }

  /** Fills a run with jobs of one caller. */
  #fill(candidates: readonly Job[], batch: readonly Job[], add: (job: Job, tokens: number) => number): void {
    const { limits } = this.#options;
    for (const job of candidates) if (!isLong(job)) add(job, SHORT);
    const decodes = batch.some(isDecode);
    const long = candidates.filter(isLong);
    const paced = ({ unread }: Job) => decodes && unread > LONG_PROMPT;
    if (this.#pace.needsDecodeRun && long.some(paced) && batch.every(isDecode)) return;
    let left = decodes
      ? limits.tokensBesideDecode
      : Math.max(limits.tokensBesideDecode, limits.tokens - tokensOf(batch));
    for (const job of long) left -= add(job, Math.min(left, paced(job) ? this.#pace.tokens : left));
  }

  /** Divides the time of a run between the jobs of several callers, of which those that got least come first. */
  #share(candidates: readonly Job[], batch: readonly Job[], add: (job: Job, tokens: number) => number): void {
    const first = candidates[0]?.caller;
    const several = candidates.some(({ caller }) => caller !== first);
    const reads = several && candidates.some((job) => job.caller === first && !isDecode(job));
    const rank = (job: Job) => (isStream(job) ? 0 : job.caller === first ? 1 : 3) + Number(isLong(job));
    const decoded = new Map<string, number>();
    // A fraction of the run.
    let left = 1;
    for (const job of candidates.toSorted((a, b) => rank(a) - rank(b))) {
      const { caller, waitingTokens } = job;
      const isOfFirst = caller === first;
      if (isDecode(job) && !isLong(job)) {
        const before = decoded.get(caller) ?? 0;
        if (before > 0 && before + waitingTokens > SHARED_DECODE_TOKENS) continue;
        decoded.set(caller, before + waitingTokens);
      }
      if (isStream(job)) {
        add(job, waitingTokens);
        continue;
      }
      const inRun = this.#pace.shared(cellsOf(job), several && isOfFirst ? FIRST_TOKENS : SHARED_TOKENS);
      const tokens = Math.floor(left * inRun);
      // Beside options or branches, the run that reads a prompt would take several times as long.
      if (reads && !isOfFirst && (isDecode(job) || waitingTokens > tokens)) continue;
      // A part of a few tokens costs about a run of its own.
      const least = Math.min(FEWEST, waitingTokens);
      if (tokens < least) continue;
      // The long prompts of the caller that got least are slowed for its own streams only.
      const isPaced =
        job.unread > LONG_PROMPT && batch.some((one) => isDecode(one) && (!isOfFirst || one.caller === caller));
      if (isPaced && this.#pace.needsDecodeRun && batch.every(isDecode)) return;
      left -= add(job, isPaced ? Math.min(tokens, this.#pace.tokens) : tokens) / inRun;
    }
  }

  /**
   * Records how long a run took, in milliseconds; the pace of long prompts depends on it. Must be called before the
   * logits of the run are delivered, because delivery turns prompts into decoding jobs.
   */
  measured(batch: readonly Job[], ms: number): void {
    const prompts = batch.filter((job) => !isDecode(job));
    const promptTokens = tokensOf(prompts);
    const read = prompts.reduce((sum, job) => sum + job.newTokens * cellsOf(job), 0);
    this.#pace.add({ ms, decodes: prompts.length < batch.length, promptTokens, cells: read / promptTokens || 0 });
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

/** Tells whether the job has prefilled its prompt and now decodes. */
function isDecode({ promptDoneAt }: Job): boolean {
  return promptDoneAt !== null;
}

/** Tells whether the job decodes a token or two at a time, such as those of a chat. */
function isStream(job: Job): boolean {
  return isDecode(job) && job.waitingTokens <= STREAM_TOKENS;
}

function isLong({ waitingTokens }: Job): boolean {
  return waitingTokens > SHORT;
}

function rowsOf(batch: readonly Job[]): number {
  return batch.reduce((sum, { plan }) => sum + plan.rows.length, 0);
}

function isBatch(job: Job): boolean {
  return job.isBatch;
}

/** Returns the number of cells that the next token of a job attends to, or of its prefix for branches. */
function cellsOf({ sequence }: Job): number {
  return sequence.length;
}

function tokensOf(batch: readonly Job[]): number {
  return batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
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
/** Weight of the newest measurement in the running averages, and in the line through the costs of tokens. */
const NEWEST = 0.25;
const NEWEST_OF_LINE = 1 / 16;
/** Cells after which a measurement says as much about how costs grow as about what the first token costs. */
const REACH = 2048;

/** Describes a run of the model after it has ended. */
export interface MeasuredRun {
  ms: number;
  /** True if the run decoded at least one job. */
  decodes: boolean;
  /** Number of prompt tokens in the run. */
  promptTokens: number;
  /** Mean number of cells that these tokens attend to. */
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
  readonly #readMs = new TokenCost();
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

  /**
   * Returns the number of tokens after `cells` others for a run while several callers have jobs: as many as can be read
   * in `SHARED_MS`, or as cost as much as the first `least` tokens of a prompt.
   */
  shared(cells: number, least = SHARED_TOKENS): number {
    const [begin, here] = [this.#readMs.at(0), this.#readMs.at(cells)];
    // A clock may not tell the time of short runs.
    if (!begin || !here) return least;
    return Math.max(FEWEST, Math.floor(Math.max(least * begin, SHARED_MS) / here));
  }

  /** Updates the estimates with a run. */
  add({ ms, decodes, promptTokens, cells }: MeasuredRun): void {
    if (!decodes) {
      // Fewer tokens take the time of a run rather than their own.
      if (promptTokens >= FEWEST) this.#readMs.add(cells, ms / promptTokens);
      return;
    }
    this.#mixedRuns = promptTokens === 0 ? 0 : this.#mixedRuns + 1;
    if (promptTokens === 0) this.#decodeMs = average(this.#decodeMs, ms);
    else if (this.#decodeMs !== undefined) {
      this.#tokenMs = average(this.#tokenMs, Math.max(0, ms - this.#decodeMs) / promptTokens);
    }
  }
}

/**
 * Estimates the cost of a token as a line over the cells that it attends to. A measurement moves the end of the line
 * that it says most about, so what is known of long prefixes stays while only short prompts are read.
 */
class TokenCost {
  #first: number | undefined;
  /** Milliseconds that `REACH` cells add. */
  #growth = 0;

  add(cells: number, ms: number): void {
    const x = cells / REACH;
    const missed = ms - (this.at(cells) ?? 0);
    const step = ((this.#first === undefined ? 1 : NEWEST_OF_LINE) * missed) / (1 + x * x);
    this.#first = Math.max(0, (this.#first ?? 0) + step);
    this.#growth = Math.max(0, this.#growth + step * x);
  }

  /** Returns the milliseconds of a token after so many cells; undefined before the first measurement. */
  at(cells: number): number | undefined {
    return this.#first === undefined ? undefined : this.#first + (this.#growth * cells) / REACH;
  }
}

function average(before: number | undefined, newest: number): number {
  return before === undefined ? newest : before + NEWEST * (newest - before);
}
