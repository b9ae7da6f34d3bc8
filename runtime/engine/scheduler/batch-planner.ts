import { type ActiveJob, isBatch, type PlannedJob } from './active-job.ts';
import type { Limits } from './limits.ts';
import { PromptPace } from './prompt-pace.ts';
import { MOST_PASSING } from './waiting-jobs.ts';

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

interface PlannerOptions {
  limits: Limits;
  /** Number of sequences that one run of the model accepts. */
  slots: number;
  /** Ends a job for which planning threw `cause`. */
  fail(active: ActiveJob, cause: unknown): void;
}

/** Decides which of the running jobs take part in each run of the model, and with how many tokens. */
export class BatchPlanner {
  readonly #options: PlannerOptions;
  readonly #pace = new PromptPace();
  /**
   * Number of plans so far for which a job had more than `SHORT` tokens to feed. In every fourth, batch jobs go first.
   */
  #promptRuns = 0;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /**
   * Plans one run and appends its new cells to the sequences. Only the first `slots` jobs take part; a job whose
   * planning throws is ended. Jobs with at most `SHORT` tokens to feed, such as decoding jobs, come first; prompts
   * share the rest of `limits.tokens`. If a job decodes, prompts get only `tokensBesideDecode`, and long ones at most
   * what `PromptPace` allows. If a long prompt waits beside decoding jobs and `PromptPace` needs the time of a run that
   * only decodes, no prompt gets any.
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

  /**
   * Records how long a run took, in milliseconds; the pace of long prompts depends on it. Must be called before the
   * logits of the run are delivered, because delivery turns prompts into decoding jobs.
   */
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
   * Plans one job's part of a run with at most 1.5 times `tokens` new tokens. If planning throws, ends the job and
   * returns an empty list.
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
   * Adds drafted tokens to the batch. The jobs share evenly the rows of logits that are left: `draftRows` less those
   * that the batch already needs.
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

/** Tells whether the job has prefilled its prompt and now decodes. */
function isDecode({ active }: PlannedJob): boolean {
  return active.submitted.promptDoneAt !== null;
}

function tokensOf(batch: readonly PlannedJob[]): number {
  return batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
}
