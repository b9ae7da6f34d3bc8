import type { QuotaUnit } from '../../../lib/keys.ts';

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
