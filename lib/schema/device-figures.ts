import * as v from 'valibot';

/** Measured accuracy and speed of a device, and of the CPU with the same graphs and weights. */
export const DeviceFigures = v.object({
  /**
   * Distance of the device's logits from the CPU's: the sum of the differences, divided by the sum of the CPU logits'
   * deviations from their mean (`logitError`); null if a logit is NaN.
   */
  error: v.nullable(v.number()),
  /** Milliseconds that the device takes for the measured prompt and one decode step of several branches. */
  deviceMs: v.number(),
  /** Milliseconds that the CPU takes for the same prompt and step. */
  cpuMs: v.number(),
});
export type DeviceFigures = v.InferOutput<typeof DeviceFigures>;
