/**
 * Forms of the weights. `auto`: the best for the device; `int8`, `int4`, `float`: that form; `keep`: the published
 * weights.
 */
export const PRECISIONS = ['auto', 'int8', 'int4', 'float', 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];
/** Names a form that `auto` chooses from, and `keep`. */
export type FixedPrecision = Exclude<Precision, 'auto'>;
