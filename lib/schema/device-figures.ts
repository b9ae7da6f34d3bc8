import * as v from 'valibot';

/** What a device was measured to do, beside the CPU with the same graphs and weights. */
export const DeviceFigures = v.object({
  /**
   * How far the device's logits are from the CPU's, as a share of their spread (`logitError`); null where one is no
   * number.
   */
  error: v.nullable(v.number()),
  /** Milliseconds for the same prompt and step of branches. */
  deviceMs: v.number(),
  cpuMs: v.number(),
});
export type DeviceFigures = v.InferOutput<typeof DeviceFigures>;
