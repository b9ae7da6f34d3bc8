import type { DurableObjectNamespace, KVNamespace } from './bindings.ts';
import type { QuotaCalls } from './keys/quota-calls.ts';
import type { FleetCalls } from './upstreams/report.ts';

/**
 * Describes the variables and bindings of `wrangler.toml`. The secrets have the names given by `key_secret` of the
 * upstreams.
 */
export interface Env {
  /** The list of upstreams. Further ones may be in BOXES_2, BOXES_3, … (`parseUpstreams`). */
  BOXES: unknown;
  /**
   * Seconds within which an upstream must begin its answer; default 90. Set it higher only if the proxy in front of the
   * caller waits longer, too.
   */
  DEADLINE_SECONDS?: number | string;
  /** Default probability below which the server abstains from a choice; default 0 (never). */
  ABSTAIN_BELOW?: number | string;
  /** Default formula for the confidence of an answer: `entropy` or `margin`; default `entropy`. */
  CONFIDENCE?: string;
  /** API keys, stored under the SHA-256 hash of their secret. */
  KEYS: KVNamespace;
  QUOTA: DurableObjectNamespace<QuotaCalls>;
  FLEET: DurableObjectNamespace<FleetCalls>;
  [secret: string]: unknown;
}
