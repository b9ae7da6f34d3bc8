import * as v from 'valibot';
import type { Device } from '../../../lib/backend.ts';
import { count } from '../../../lib/schema/values.ts';

/** Describes what one edge isolate has observed of one upstream since its last report. */
export const UpstreamReport = v.strictObject({
  /** Number of requests of this isolate that are running on the upstream now. */
  running: count,
  /** Number of requests that have ended. */
  ended: count,
  /** True if at least one of the ended requests was answered. */
  answered: v.boolean(),
  /** Number of requests that failed after the last one that was answered. */
  failed: count,
});
export type UpstreamReport = v.InferOutput<typeof UpstreamReport>;

/**
 * Describes a report of one isolate of the Worker. `edge` is the random id of the isolate. `upstreams` maps the names
 * of upstreams to what it observed; those without requests are omitted.
 */
export const EdgeReport = v.strictObject({
  edge: v.pipe(v.string(), v.maxLength(64)),
  upstreams: v.record(v.string(), UpstreamReport),
});
export type EdgeReport = v.InferOutput<typeof EdgeReport>;

/** Describes the state of one upstream that all isolates share. */
export interface UpstreamStatus {
  /** `Breaker.failures` of the upstream. */
  failures: number;
  /** `Breaker.openings` of the upstream. */
  openings: number;
  /**
   * `Breaker.opensUntil` as milliseconds from now, because the clocks of isolates differ; null if the breaker is
   * closed.
   */
  opensForMs: number | null;
  /** Load that all isolates put on the upstream (`Load.value`). */
  load: number;
  /** Models that the upstream has loaded, the last one first; absent: not known yet. */
  active?: readonly string[];
  /** Device of the upstream; absent: not known yet. */
  device?: Device;
}

/** Maps the names of upstreams to their states. Upstreams in their initial state are omitted. */
export type FleetStatus = Record<string, UpstreamStatus>;

/** Declares the calls that edge isolates make to the fleet's Durable Object. */
export interface FleetCalls {
  /** Adds an isolate's report. Returns the state that all isolates share. */
  report(report: EdgeReport): Promise<FleetStatus>;
}
