import type { DurableObjectNamespace, KVNamespace } from 'cloudflare:workers';
import type { QuotaCalls } from './keys/quota-calls.ts';
import type { FleetCalls } from './upstreams/report.ts';

/** The bindings of `wrangler.toml`. Secrets are named by the upstreams' `key_secret`. */
export interface Env {
  /** The upstreams; more of them may stand in BOXES_2, BOXES_3, … (`parseUpstreams`). */
  BOXES: unknown;
  /** Seconds that an upstream may take to begin its answer; default 90. Longer only where the caller's proxy waits longer, too. */
  DEADLINE_SECONDS?: number | string;
  /** Choices that are less sure are abstained from, where a request does not say; default 0. */
  ABSTAIN_BELOW?: number | string;
  /** `entropy` or `margin`; default `entropy`. */
  CONFIDENCE?: string;
  /** API keys, by the SHA-256 of the key. */
  KEYS: KVNamespace;
  QUOTA: DurableObjectNamespace<QuotaCalls>;
  FLEET: DurableObjectNamespace<FleetCalls>;
  [secret: string]: unknown;
}
