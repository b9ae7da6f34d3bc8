import type { DurableObjectNamespace, KVNamespace } from './bindings.ts';
import type { QuotaCalls } from './keys/quota-calls.ts';
import type { FleetCalls } from './upstreams/report.ts';

/** Describes the bindings of `wrangler.toml`. Secrets are named by the upstreams' `key_secret`. */
export interface Env {
  /** The upstreams; more of them may be in BOXES_2, BOXES_3, … (`parseUpstreams`). */
  BOXES: unknown;
  /**
   * Seconds until an upstream must begin its answer; default 90. Set it higher only if the caller's proxy waits longer
   * too.
   */
  DEADLINE_SECONDS?: number | string;
  /** Default probability below which a choice is abstained from; default 0. */
  ABSTAIN_BELOW?: number | string;
  /** `entropy` or `margin`; default `entropy`. */
  CONFIDENCE?: string;
  /** API keys, by the SHA-256 of the key. */
  KEYS: KVNamespace;
  QUOTA: DurableObjectNamespace<QuotaCalls>;
  FLEET: DurableObjectNamespace<FleetCalls>;
  [secret: string]: unknown;
}
