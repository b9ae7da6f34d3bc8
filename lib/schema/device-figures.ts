import * as v from 'valibot';

/** Measured accuracy and speed of a device, and of the CPU with the same graphs and weights. */
export const DeviceFigures = v.object({
  /** Distance of the device's logits from the CPU's, as a share of their spread (`logitError`); null if one is NaN. */
  error: v.nullable(v.number()),
  /** Milliseconds for the same prompt and step of branches. */
  deviceMs: v.number(),
  cpuMs: v.number(),
});
export type DeviceFigures = v.InferOutput<typeof DeviceFigures>;
