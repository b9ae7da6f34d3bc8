import * as v from 'valibot';

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** What one edge saw of one upstream since its last report. */
export const UpstreamReport = v.strictObject({
  /** Requests that run there now, sent by this edge. */
  running: Count,
  /** Requests that ended. */
  ended: Count,
  /** Whether one of them was answered, */
  answered: v.boolean(),
  /** and how many failed since. */
  failed: Count,
});
export type UpstreamReport = v.InferOutput<typeof UpstreamReport>;

/** An edge is one isolate of the Worker, named by a random id. */
export const EdgeReport = v.strictObject({
  edge: v.pipe(v.string(), v.maxLength(64)),
  upstreams: v.record(v.string(), UpstreamReport),
});
export type EdgeReport = v.InferOutput<typeof EdgeReport>;

/** What the fleet's Durable Object knows of one upstream. Upstreams about which there is nothing to say are left out. */
export interface UpstreamStatus {
  /** Its breaker, with milliseconds from now instead of a time, as clocks differ. */
  failures: number;
  openings: number;
  opensForMs: number | null;
  /** All edges' load (`Load.value`). */
  load: number;
  /** The model in the upstream's slot; null: none; absent: not known. */
  active?: string | null;
}

export type FleetStatus = Record<string, UpstreamStatus>;

/** The calls that edges make to the fleet's Durable Object. */
export interface FleetCalls {
  report(report: EdgeReport): Promise<FleetStatus>;
}
