import type { DurableObjectNamespace, KVNamespace } from './bindings.ts';
import type { QuotaCalls } from './keys/quota-calls.ts';
import type { FleetCalls } from './upstreams/report.ts';

/**
 * Describes the variables, bindings and secrets that wrangler passes to the Worker. `key_secret` of each upstream names
 * the secret with its key.
 */
export interface Env {
  /** The list of upstreams. It may continue in BOXES_2, BOXES_3, … (`parseUpstreams`). */
  BOXES: unknown;
  /**
   * Seconds that an upstream has to begin its answer; default 90. A higher value helps only if the proxy between the
   * caller and this Worker also waits longer.
   */
  DEADLINE_SECONDS?: number | string;
  /** Default probability below which the server abstains from a choice; default 0 (never). */
  ABSTAIN_BELOW?: number | string;
  /** Default formula for the confidence of an answer: `entropy` or `margin`; default `entropy`. */
  CONFIDENCE?: string;
  /** API keys, stored under the SHA-256 hash of their secret. */
  KEYS: KVNamespace;
  /** Token buckets, one Durable Object for each key with a limit. */
  QUOTA: DurableObjectNamespace<QuotaCalls>;
  /** State of the upstreams, in one Durable Object. */
  FLEET: DurableObjectNamespace<FleetCalls>;
  [secret: string]: unknown;
}
