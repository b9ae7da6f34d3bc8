import * as v from 'valibot';

/**
 * Compares a device with the CPU on the same graphs and weights: the error of the device's logits, and the time of
 * each.
 */
export const DeviceFigures = v.object({
  /**
   * Error of the device's logits: the sum of their absolute differences from the CPU's, divided by the sum of the CPU
   * logits' absolute deviations from their mean (`logitError`); null if a logit is NaN.
   */
  error: v.nullable(v.number()),
  /** Milliseconds that the device takes for the measured prompt and one decode step of several branches. */
  deviceMs: v.number(),
  /** Milliseconds that the CPU takes for the same prompt and step. */
  cpuMs: v.number(),
});
export type DeviceFigures = v.InferOutput<typeof DeviceFigures>;
