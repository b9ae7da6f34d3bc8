import { type Rule, rule } from '../validation/rules.ts';

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
  for (const [name, inner] of Object.entries(value)) {
    const path = pathOfInfinity(inner);
    if (path) return [Array.isArray(value) ? Number(name) : name, ...path];
  }
  return null;
}
