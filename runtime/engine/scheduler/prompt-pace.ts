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
  /** Number of prompt tokens in the run. */
  promptTokens: number;
}

/**
 * Estimates how many prompt tokens fit into a run beside decoding jobs, so that the gap between two tokens of these
 * jobs is at most about twice as long as usual. The estimate follows the measured runs, because the cost of a token
 * grows with the prompt and differs between machines.
 */
export class PromptPace {
  /** Average milliseconds of runs that only decode; undefined before the first. */
  #decodeMs: number | undefined;
  /** Average milliseconds that one prompt token adds to a run; undefined before the first. */
  #tokenMs: number | undefined;
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

  /** Updates the estimate with a run. Runs that only read prompts do not count. */
  add({ ms, decodes, promptTokens }: MeasuredRun): void {
    if (!decodes) return;
    this.#mixedRuns = promptTokens === 0 ? 0 : this.#mixedRuns + 1;
    if (promptTokens === 0) this.#decodeMs = average(this.#decodeMs, ms);
    else if (this.#decodeMs !== undefined) {
      this.#tokenMs = average(this.#tokenMs, Math.max(0, ms - this.#decodeMs) / promptTokens);
    }
  }
}

function average(before: number | undefined, newest: number): number {
  return before === undefined ? newest : before + NEWEST * (newest - before);
}
