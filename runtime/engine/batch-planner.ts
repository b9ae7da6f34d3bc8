import { type ActiveJob, isBatch, type PlannedJob } from './active-job.ts';
import type { Limits } from './limits.ts';
import { PromptPace } from './prompt-pace.ts';
import { MOST_PASSING } from './waiting-jobs.ts';

/**
 * Jobs that wait for at most this many tokens take part in every run, because so few tokens cost little compared with
 * reading the weights.
 */
const SHORT = 64;
/**
 * Prompts with more tokens to read go at the pace that keeps streams smooth (`PromptPace`). Shorter ones go faster,
 * because a short answer is wanted sooner than a stream is wanted smooth.
 */
const LONG_PROMPT = 1024;

interface PlannerOptions {
  limits: Limits;
  /** Number of sequences that one run of the model accepts. */
  slots: number;
  /** Ends a job for which no run could be planned, with the error that prevented it. */
  fail(active: ActiveJob, cause: unknown): void;
}

/** Plans the runs of the model: which of the running jobs get how many tokens. */
export class BatchPlanner {
  readonly #options: PlannerOptions;
  readonly #pace = new PromptPace();
  /**
   * Number of plans so far in which a job had more than `SHORT` tokens to read. In every fourth, batch jobs go first.
   */
  #promptRuns = 0;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /**
   * Plans one run. Jobs that need few tokens come first, as decoding jobs do; prompts share the remaining tokens.
   * Beside decoding jobs, these are `tokensBesideDecode`, or fewer for a prompt of more than `LONG_PROMPT` tokens. Such
   * a prompt gets none in a run whose time as a decode-only run must be measured.
   *
   * @param running jobs that hold a sequence, the least recently served first
   */
  plan(running: readonly ActiveJob[]): PlannedJob[] {
    const { limits, slots } = this.#options;
    const candidates = running.slice(0, slots);
    const short = candidates.filter(({ run }) => run.waitingTokens <= SHORT);
    const long = this.#promptOrder(candidates.filter(({ run }) => run.waitingTokens > SHORT));
    const batch = short.flatMap((active) => this.#planJob(active, SHORT));
    const decodes = batch.some(isDecode);
    const paced = ({ unread }: ActiveJob): boolean => decodes && unread > LONG_PROMPT;
    if (this.#pace.needsDecodeRun && long.some(paced) && batch.every(isDecode)) return this.#withDrafts(batch);
    const used = tokensOf(batch);
    let left = decodes ? limits.tokensBesideDecode : Math.max(limits.tokensBesideDecode, limits.tokens - used);
    for (const active of long) {
      if (left <= 0) break;
      const planned = this.#planJob(active, paced(active) ? Math.min(left, this.#pace.tokens) : left);
      batch.push(...planned);
      left -= tokensOf(planned);
    }
    return this.#withDrafts(batch);
  }

  /** Notes how long a run took, which decides the pace of long prompts. Call before its logits are delivered. */
  measured(batch: readonly PlannedJob[], ms: number): void {
    const prompts = batch.filter((planned) => !isDecode(planned));
    this.#pace.add({ ms, decodes: prompts.length < batch.length, promptTokens: tokensOf(prompts) });
  }

  /** Returns prompts in the order in which they get tokens: interactive first, but batch first in every fourth run. */
  #promptOrder(jobs: readonly ActiveJob[]): readonly ActiveJob[] {
    if (jobs.length > 0) this.#promptRuns++;
    const batch = jobs.filter(({ submitted }) => isBatch(submitted));
    const interactive = jobs.filter(({ submitted }) => !isBatch(submitted));
    return this.#promptRuns % (MOST_PASSING + 1) === 0 ? [...batch, ...interactive] : [...interactive, ...batch];
  }

  /**
   * Plans one job's part of a run with at most about `tokens` new tokens. If planning throws, ends the job and returns
   * an empty list.
   */
  #planJob(active: ActiveJob, tokens: number): PlannedJob[] {
    try {
      const plan = active.run.plan(tokens);
      return [{ active, plan, newTokens: active.run.sequence.length - plan.start }];
    } catch (cause) {
      this.#options.fail(active, cause);
      return [];
    }
  }

  /**
   * Adds drafted tokens to the batch. The jobs share evenly what `draftRows` leaves beside the rows of logits that the
   * batch already needs.
   */
  #withDrafts(batch: readonly PlannedJob[]): PlannedJob[] {
    let left = this.#options.limits.draftRows - batch.reduce((sum, { plan }) => sum + plan.rows.length, 0);
    return batch.map((planned, index) => {
      const plan = planned.active.run.draft(planned.plan, Math.floor(left / (batch.length - index)));
      left -= plan.rows.length - planned.plan.rows.length;
      return { ...planned, plan };
    });
  }
}

/** Tells whether the job has read its prompt, and now decodes. */
function isDecode({ active }: PlannedJob): boolean {
  return active.submitted.promptDoneAt !== null;
}

function tokensOf(batch: readonly PlannedJob[]): number {
  return batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
}
