import * as v from 'valibot';

/**
 * The number format of the weights. `int8`: 8 bits with a scale for each output column, activations quantised for each
 * token; over fixed shapes, blocks of 8 bits. `int4`: blocks of 4 bits. `float`: computed in 32 bits.
 */
export const WEIGHT_FORMS = ['int8', 'int4', 'float'] as const;
export const WeightForm = v.picklist(WEIGHT_FORMS);
export type WeightForm = v.InferOutput<typeof WeightForm>;
