import * as v from 'valibot';

/**
 * Number formats of the weights. `int8`: 8-bit weights with a scale for each output column, and activations quantized
 * for each token. `int8-blocks`: 8-bit weights and activations in blocks of inputs, each with its own scale. `int4`:
 * 4-bit weights in blocks. `published`: the blocks of a GGUF file, unchanged. `float`: 32-bit floats.
 */
export const WEIGHT_FORMS = ['int8', 'int8-blocks', 'int4', 'published', 'float'] as const;
export const WeightForm = v.picklist(WEIGHT_FORMS);
export type WeightForm = v.InferOutput<typeof WeightForm>;

/** Fields of responses that report the number format of a model's weights and why it was chosen. */
export const formFields = {
  precision: v.optional(v.pipe(WeightForm, v.description("Number format of the model's weights."))),
  precision_reason: v.optional(v.pipe(v.string(), v.description('Why this number format was chosen.'))),
};
