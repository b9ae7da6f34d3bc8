import * as v from 'valibot';

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** One edge's observations of one upstream since its last report. */
export const UpstreamReport = v.strictObject({
  /** Requests of this edge that are running there now. */
  running: Count,
  /** Requests that ended. */
  ended: Count,
  /** True if one of them was answered. */
  answered: v.boolean(),
  /** The number that have failed since. */
  failed: Count,
});
export type UpstreamReport = v.InferOutput<typeof UpstreamReport>;

/** A report of one edge. An edge is one isolate of the Worker, named by a random id. */
export const EdgeReport = v.strictObject({
  edge: v.pipe(v.string(), v.maxLength(64)),
  upstreams: v.record(v.string(), UpstreamReport),
});
export type EdgeReport = v.InferOutput<typeof EdgeReport>;

/** Describes the shared state of one upstream. Upstreams in their initial state are omitted. */
export interface UpstreamStatus {
  /** Its breaker, with milliseconds from now instead of a time, as clocks differ. */
  failures: number;
  openings: number;
  opensForMs: number | null;
  /** The load of all edges (`Load.value`). */
  load: number;
  /** The model in the upstream's slot; null: none; absent: unknown. */
  active?: string | null;
}

export type FleetStatus = Record<string, UpstreamStatus>;

/** Declares the calls that edges make to the fleet's Durable Object. */
export interface FleetCalls {
  report(report: EdgeReport): Promise<FleetStatus>;
}
