import type { QuotaUnit } from '../../lib/keys.ts';
import type { DurableObjectNamespace, KVNamespace } from './bindings.ts';
import type { FleetCalls } from './upstreams/report.ts';

/**
 * Describes the variables, bindings and secrets that the Worker gets. The secret that `key_secret` of an upstream names
 * has the API key that the edge sends to this upstream.
 */
export interface Env {
  /** The list of upstreams. It may continue in BOXES_2, BOXES_3, … (`parseUpstreams`). */
  BOXES: unknown;
  /**
   * Seconds, from 1 to 3600, until an upstream must begin its answer to a chat, or complete its answer to tasks;
   * default 90. A higher value helps only if the proxy between the caller and this Worker also waits longer.
   */
  DEADLINE_SECONDS?: number | string;
  /**
   * Probability, from 0 to 1, below which the edge abstains if a request sets no `abstain_below`; default 0 (never).
   */
  ABSTAIN_BELOW?: number | string;
  /** Other names for the loaded model, separated by commas or spaces; none by default. */
  ALIASES?: string;
  /** Model that uncertain questions are asked again; none by default. */
  ESCALATE?: string;
  /** Probability, from 0 to 1, below which a question is asked again; default 0.8. */
  ESCALATE_BELOW?: number | string;
  /** Formula for `confidence` if a request names none: `entropy` or `margin`; by default that of the format. */
  CONFIDENCE?: string;
  /** API keys, stored under the SHA-256 hash of their secret. */
  KEYS: KVNamespace;
  /** Token buckets, one Durable Object for each key with `requestsPerMinute`. */
  QUOTA: DurableObjectNamespace<QuotaCalls>;
  /** State of the upstreams, in one Durable Object. */
  FLEET: DurableObjectNamespace<FleetCalls>;
  [secret: string]: unknown;
}

/** Declares the calls that edge isolates make to the Durable Object of a key. */
export interface QuotaCalls {
  /**
   * Takes an amount from the key's bucket for this unit. Returns null, or the seconds until the amount is accepted if
   * the bucket does not hold it.
   */
  take(unit: QuotaUnit, perMinute: number, amount: number): Promise<number | null>;
  /** Adds an amount to the bucket, or takes it if it is negative, also below zero. */
  giveBack(unit: QuotaUnit, perMinute: number, amount: number): Promise<void>;
}
