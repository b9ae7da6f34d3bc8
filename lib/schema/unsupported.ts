import * as v from 'valibot';
import { rule } from '../validation/rules.ts';

/**
 * Returns the schema of a field that is not supported and would change the meaning of the request: it is refused unless
 * its value has no effect (`hasNoEffect`). The field is not in the contract, so that generated clients do not offer it.
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

/** Tells whether a value is an empty list or object. */
export const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
