import { WEIGHT_FORMS } from '../../lib/schema/weight-form.ts';

/**
 * Lists the precisions that a caller can request: `auto` chooses the best weight form for the device, the name of a
 * form requests that form, and `keep` leaves the weights as published.
 */
export const PRECISIONS = ['auto', ...WEIGHT_FORMS, 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];
/** Names a precision that leaves no choice of weight forms. */
export type FixedPrecision = Exclude<Precision, 'auto'>;
