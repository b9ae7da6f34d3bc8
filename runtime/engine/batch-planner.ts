import type { Limits } from './limits.ts';
import { isBatch, type PlannedTurn, type Turn } from './turn.ts';
import { MOST_PASSING } from './waiting-jobs.ts';

/** Tokens up to which a job is in every run: so few cost little compared with reading the weights. */
const SHORT = 64;

interface PlannerOptions {
  limits: Limits;
  /** Sequences that one run takes. */
  slots: number;
  /** Ends a job whose part could not be planned. */
  fail(turn: Turn, cause: unknown): void;
}

/** Plans the runs of the model: which of the running jobs get how many tokens. */
export class BatchPlanner {
  readonly #options: PlannerOptions;
  /** Runs so far that read prompts. */
  #promptRuns = 0;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /**
   * Plans one run: first the jobs that need few tokens, as decoding jobs do, then prompts within the remaining tokens.
   * A long prompt always gets some tokens.
   *
   * @param running those served longest ago come first
   */
  plan(running: readonly Turn[]): PlannedTurn[] {
    const { limits, slots } = this.#options;
    const candidates = running.slice(0, slots);
    const short = candidates.filter(({ run }) => run.waitingTokens <= SHORT);
    const long = this.#promptOrder(candidates.filter(({ run }) => run.waitingTokens > SHORT));
    const batch = short.flatMap((turn) => this.#planTurn(turn, SHORT));
    const decodes = batch.some(({ turn }) => turn.entry.promptDoneAt !== null);
    const used = tokensOf(batch);
    let left = decodes ? limits.tokensBesideDecode : Math.max(limits.tokensBesideDecode, limits.tokens - used);
    for (const turn of long) {
      if (left <= 0) break;
      const planned = this.#planTurn(turn, left);
      batch.push(...planned);
      left -= tokensOf(planned);
    }
    return this.#withDrafts(batch);
  }

  /** Returns prompts in the order in which they get tokens: interactive first, but batch first in every fourth run. */
  #promptOrder(turns: readonly Turn[]): readonly Turn[] {
    if (turns.length > 0) this.#promptRuns++;
    const batch = turns.filter(({ entry }) => isBatch(entry));
    const interactive = turns.filter(({ entry }) => !isBatch(entry));
    return this.#promptRuns % (MOST_PASSING + 1) === 0 ? [...batch, ...interactive] : [...interactive, ...batch];
  }

  /** Plans one job's part. Ends the job and returns nothing when that fails. */
  #planTurn(turn: Turn, tokens: number): PlannedTurn[] {
    try {
      const plan = turn.run.plan(tokens);
      return [{ turn, plan, newTokens: turn.run.sequence.length - plan.start }];
    } catch (cause) {
      this.#options.fail(turn, cause);
      return [];
    }
  }

  /** Adds drafted tokens where few rows of logits are needed, shared evenly. */
  #withDrafts(batch: readonly PlannedTurn[]): PlannedTurn[] {
    let left = this.#options.limits.draftRows - batch.reduce((sum, { plan }) => sum + plan.rows.length, 0);
    return batch.map((planned, index) => {
      const plan = planned.turn.run.draft(planned.plan, Math.floor(left / (batch.length - index)));
      left -= plan.rows.length - planned.plan.rows.length;
      return { ...planned, plan };
    });
  }
}

function tokensOf(batch: readonly PlannedTurn[]): number {
  return batch.reduce((sum, { newTokens }) => sum + newTokens, 0);
}
