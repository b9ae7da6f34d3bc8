import * as v from 'valibot';
import { isObject } from '../json/property.ts';
import { type Rule, rule } from '../validation/rules.ts';

/**
 * The schema of any JSON object, which keeps it exactly as sent. Valibot's own object schemas would drop a member named
 * `__proto__`.
 */
export const jsonObject = v.pipe(
  v.custom<{ readonly [key: string]: unknown }>(isObject),
  v.metadata({ type: 'object', additionalProperties: true }),
);

/**
 * Returns the rule that all numbers inside a JSON value are finite (docs/interface.md, D-7). `JSON.parse` makes `1e400`
 * Infinity, which the model would read as null.
 */
export function finiteNumbers<TInput>(): Rule<TInput> {
  return rule<TInput>((value) => {
    const at = pathOfInfinity(value);
    return at && { code: 'invalid_value', at, message: 'is too large for a number; send it as text, in quotes' };
  });
}

function pathOfInfinity(value: unknown): (string | number)[] | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : [];
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    // By index, because a list may have 250,000 items.
    for (let i = 0; i < value.length; i++) {
      const path = pathOfInfinity(value[i]);
      if (path) return [i, ...path];
    }
    return null;
  }
  // Not by entries, which take five times as long for 120,000 members.
  for (const name of Object.keys(value)) {
    const path = pathOfInfinity((value as { readonly [name: string]: unknown })[name]);
    if (path) return [name, ...path];
  }
  return null;
}
