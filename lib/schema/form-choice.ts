import * as v from 'valibot';
import { WeightForm } from './weight-form.ts';

/** Says why a model runs in its form, with the measurements behind the choice. */
export const FormChoice = v.strictObject({
  /** For people: in `assay doctor` and `GET /health`. */
  reason: v.pipe(v.string(), v.maxLength(1000)),
  /** The CPU's kernels when it was measured (`kernelFamily`). */
  kernels: v.pipe(v.string(), v.maxLength(64)),
  /** Error against 32-bit floats and processor milliseconds of each form that was tried. */
  measured: v.array(v.strictObject({ form: WeightForm, error: v.nullable(v.number()), ms: v.number() })),
  /** An error beyond this at load refuses the form; null if no reference could be computed. */
  errorLimit: v.nullable(v.number()),
});
export type FormChoice = v.InferOutput<typeof FormChoice>;
