import * as v from 'valibot';
import { rule } from '../validation/rules.ts';

/**
 * Returns the schema of a field that is not supported. A value is refused with `unsupported_parameter`, unless it is
 * null or `hasNoEffect` is true for it. The contract omits the field, so generated clients do not offer it.
 *
 * @param hasNoEffect tells whether a value leaves the meaning of the request as it is without the field
 * @param instead rest of the error message after the field's path: what to send instead
 */
export function unsupported(hasNoEffect: (value: unknown) => boolean, instead: string) {
  return v.nullish(
    v.pipe(
      v.unknown(),
      rule((value) => (hasNoEffect(value) ? null : { code: 'unsupported_parameter', message: instead })),
      v.metadata({ 'x-unsupported': true }),
    ),
  );
}

/** Tells whether a value is an empty list or object; false for all other kinds of values. */
export const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
