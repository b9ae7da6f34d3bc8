import * as v from 'valibot';
import { strictObject } from '../validation/objects.ts';
import { optional } from './values.ts';

/**
 * Number formats of the weights. `int8`: 8-bit weights with a scale for each output column, and activations quantized
 * for each token. `int8-blocks`: 8-bit weights and activations in blocks of inputs, each with its own scale. `int4`:
 * 4-bit weights in blocks. `published`: the blocks of a GGUF file, unchanged. `float`: 32-bit floats.
 */
export const PRECISIONS = ['int8', 'int8-blocks', 'int4', 'published', 'float'] as const;
export const Precision = v.picklist(PRECISIONS);
export type Precision = v.InferOutput<typeof Precision>;

/** Fields of responses that report the number format of a model's weights and why it was chosen. */
export const precisionFields = {
  precision: optional(Precision, "Number format of the model's weights."),
  precision_reason: optional(v.string(), 'Why this number format was chosen.'),
};

/** Records the reason for the number format of a model's weights, and the measurements behind the choice. */
export const PrecisionChoice = strictObject({
  /** The reason as a sentence, which `assay doctor` and `GET /health` report. */
  reason: v.pipe(v.string(), v.maxLength(1000)),
  /** Name of the kernel family of the CPU on which the formats were measured (`kernelFamily`). */
  kernels: v.pipe(v.string(), v.maxLength(64)),
  /**
   * Measurements of each format that was tried: its error against 32-bit floats, for a decision model the difference
   * that 95% of its probabilities do not exceed, and its processor time in milliseconds.
   */
  measured: v.array(
    strictObject({
      precision: Precision,
      error: v.nullable(v.number()),
      shift: v.exactOptional(v.number()),
      ms: v.number(),
    }),
  ),
  /**
   * Largest accepted error. If the error measured when the model is loaded is larger, the format is refused. Null if no
   * reference could be computed.
   */
  errorLimit: v.nullable(v.number()),
});
export type PrecisionChoice = v.InferOutput<typeof PrecisionChoice>;
