import type { Metrics } from '../../lib/backend.ts';
import type { JobResult } from '../engine/job.ts';

/** Cached tokens are reported in multiples of this number, so they do not tell exactly where two texts differ. */
const CACHE_BLOCK = 16;

/** Holds the result of a finished job, with times that the engine does not measure. */
export interface Measured {
  result: JobResult;
  /**
   * Milliseconds from the request to run the job, before its media are encoded, to the first token that `Job.onToken`
   * received; null if it received none, as when only options were scored.
   */
  firstTokenMs: number | null;
  /** Milliseconds from the same time to the end of the answer. */
  totalMs: number;
}

/** Adds up the times and counts of the jobs that answered one request, one after another. */
export function together(jobs: readonly Measured[]): Measured {
  const sum = (of: (job: Measured) => number) => jobs.reduce((total, job) => total + of(job), 0);
  return {
    result: {
      branches: jobs.flatMap(({ result }) => result.branches),
      promptTokens: sum(({ result }) => result.promptTokens),
      cachedTokens: sum(({ result }) => result.cachedTokens),
      queueMs: sum(({ result }) => result.queueMs),
      promptMs: sum(({ result }) => result.promptMs),
      generationMs: sum(({ result }) => result.generationMs),
    },
    firstTokenMs: null,
    totalMs: sum(({ totalMs }) => totalMs),
  };
}

/**
 * Returns the usage and the metrics of an answer, as the API reports them. Times are in milliseconds with three
 * decimals.
 */
export function figuresOf(
  { result, firstTokenMs, totalMs }: Measured,
  { promptTokens, device }: { promptTokens: number; device: Metrics['device'] },
) {
  const completionTokens = result.branches.reduce((sum, { chosen }) => sum + chosen, 0);
  const { queueMs, promptMs, generationMs } = result;
  const cachedTokens = result.cachedTokens - (result.cachedTokens % CACHE_BLOCK);
  const firstMs = firstTokenMs ?? (completionTokens > 0 ? queueMs + promptMs : null);
  const perSecond = (tokens: number, ms: number) => (tokens > 0 && ms > 0 ? rounded((tokens / ms) * 1000) : null);
  const metrics: Metrics = {
    queue_ms: rounded(queueMs),
    prompt_ms: rounded(promptMs),
    time_to_first_token_ms: firstMs === null ? null : rounded(firstMs),
    generation_ms: rounded(generationMs),
    total_ms: rounded(totalMs),
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    prompt_tokens_per_second: perSecond(promptTokens - cachedTokens, promptMs),
    // The first token is chosen from the logits of the prompt, so `generationMs` covers only the tokens after it.
    tokens_per_second: perSecond(completionTokens - 1, generationMs),
    device,
  };
  return { usage: { promptTokens, completionTokens }, metrics };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
