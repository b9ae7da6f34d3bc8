/** Holds one reading of `GET /metrics`. */
export interface Sample {
  /** Time of the reading, in milliseconds of a monotonic clock. */
  at: number;
  /** Value of each metric by its name, summed over its labels. */
  values: ReadonlyMap<string, number>;
}

/** Holds the figures that `assay top` shows; rates are means over one interval. Null: the server does not report it. */
export interface Figures {
  requests_running: number | null;
  requests_waiting: number | null;
  requests_per_second: number | null;
  prompt_tokens_per_second: number | null;
  prompt_tokens_cached_per_second: number | null;
  completion_tokens_per_second: number | null;
  engine_memory_bytes: number | null;
  server_memory_bytes: number | null;
  engine_restarts: number | null;
}

/**
 * Parses Prometheus' text format, lines of `name{labels} value`. Skips comments, any other lines and values that are
 * not finite. `at` is the time of the reading in milliseconds.
 */
export function readSample(text: string, at: number): Sample {
  const values = new Map<string, number>();
  for (const [, name, value] of text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})? (\S+)(?: \d+)?$/gm)) {
    const number = Number(value);
    if (Number.isFinite(number)) values.set(name!, (values.get(name!) ?? 0) + number);
  }
  return { at, values };
}

/**
 * Returns the figures for the time between two readings. A counter that is lower than before belongs to a server that
 * was restarted, so its whole value counts.
 */
export function figuresBetween(before: Sample, now: Sample): Figures {
  const seconds = (now.at - before.at) / 1000;
  const gauge = (name: string) => now.values.get(name) ?? null;
  const rate = (name: string) => {
    const count = now.values.get(name);
    if (count === undefined || seconds <= 0) return null;
    const earlier = before.values.get(name) ?? 0;
    return (count < earlier ? count : count - earlier) / seconds;
  };
  return {
    requests_running: gauge('assay_requests_running'),
    requests_waiting: gauge('assay_requests_waiting'),
    requests_per_second: rate('assay_requests_total'),
    prompt_tokens_per_second: rate('assay_prompt_tokens_total'),
    prompt_tokens_cached_per_second: rate('assay_prompt_tokens_cached_total'),
    completion_tokens_per_second: rate('assay_completion_tokens_total'),
    engine_memory_bytes: gauge('assay_engine_resident_bytes'),
    server_memory_bytes: gauge('process_resident_memory_bytes'),
    engine_restarts: gauge('assay_engine_restarts_total'),
  };
}
