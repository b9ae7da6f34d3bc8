import * as v from 'valibot';

/**
 * Number formats of the weights. `int8`: 8 bits with a scale for each output column, and activations quantized for each
 * token. `int8-blocks`: 8 bits in blocks of inputs, each with a scale of its own, in weights and activations. `int4`: 4
 * bits in blocks. `float`: 32-bit floats.
 */
export const WEIGHT_FORMS = ['int8', 'int8-blocks', 'int4', 'float'] as const;
export const WeightForm = v.picklist(WEIGHT_FORMS);
export type WeightForm = v.InferOutput<typeof WeightForm>;

/** Fields of responses that tell the form of a model's weights. */
export const formFields = {
  precision: v.optional(v.pipe(WeightForm, v.description("Numeric form of the model's weights."))),
  precision_reason: v.optional(v.pipe(v.string(), v.description('Why this form of the weights was chosen.'))),
};
