import { WEIGHT_FORMS } from '../../lib/schema/weight-form.ts';

/**
 * Weight forms that a caller can request. `auto` chooses the best for the device; the names of forms request that form;
 * `keep` leaves the weights as published.
 */
export const PRECISIONS = ['auto', ...WEIGHT_FORMS, 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];
/** Names a request for a certain weight form, which leaves nothing to choose. */
export type FixedPrecision = Exclude<Precision, 'auto'>;
