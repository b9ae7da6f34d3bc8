/**
 * Weight forms that a caller can request. `auto` chooses the best for the device; `int8`, `int4` and `float` request
 * that form; `keep` leaves the weights as published.
 */
export const PRECISIONS = ['auto', 'int8', 'int4', 'float', 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];
/** Names a request for a certain weight form, which leaves nothing to choose. */
export type FixedPrecision = Exclude<Precision, 'auto'>;
