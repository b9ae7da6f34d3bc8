import * as v from 'valibot';

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Observations that one gateway isolate made of one upstream since its last report. */
export const UpstreamReport = v.strictObject({
  /** Number of requests of this isolate that are running on the upstream now. */
  running: Count,
  /** Number of requests that ended. */
  ended: Count,
  /** True if at least one of them was answered. */
  answered: v.boolean(),
  /** Number of requests that failed since the last answer. */
  failed: Count,
});
export type UpstreamReport = v.InferOutput<typeof UpstreamReport>;

/** A report of one isolate of the Worker; `edge` is its random id. */
export const EdgeReport = v.strictObject({
  edge: v.pipe(v.string(), v.maxLength(64)),
  upstreams: v.record(v.string(), UpstreamReport),
});
export type EdgeReport = v.InferOutput<typeof EdgeReport>;

/** Describes the shared state of one upstream. Upstreams in their initial state are omitted. */
export interface UpstreamStatus {
  /** State of the upstream's breaker. `opensForMs` is a duration from now instead of a time, because clocks differ. */
  failures: number;
  openings: number;
  opensForMs: number | null;
  /** Load that all isolates put on the upstream (`Load.value`). */
  load: number;
  /** The model that the upstream has loaded; null if none; absent if unknown. */
  active?: string | null;
}

export type FleetStatus = Record<string, UpstreamStatus>;

/** Declares the calls that gateway isolates make to the fleet's Durable Object. */
export interface FleetCalls {
  report(report: EdgeReport): Promise<FleetStatus>;
}
