import type { NumberRules } from '../number/number-language.ts';
import type { Subschema, TypeName } from '../schema/document.ts';
import { KEYWORDS } from '../schema/keywords.ts';
import type { StringFormat, StringRules } from '../text/compile-string.ts';

/**
 * Holds the types that a value may have: those that all subschemas allow (`allowed`), and those of them that are
 * generated (`generated`). `integer` counts as `number`.
 */
export interface Types {
  allowed: ReadonlySet<TypeName>;
  generated: ReadonlySet<TypeName>;
  /** True if numbers must be whole. */
  integer: boolean;
}

const BASE: readonly TypeName[] = ['object', 'array', 'string', 'number', 'boolean', 'null'];

/**
 * Returns the types that all subschemas allow. If none has `type`, but some have keywords of one type such as
 * `minLength`, only the types of these keywords are generated.
 */
export function mergeTypes(constraints: readonly Subschema[]): Types {
  let allowed: ReadonlySet<TypeName> = new Set(BASE);
  let integer = false;
  let named = false;
  for (const { types } of constraints) {
    if (!types) continue;
    named = true;
    const names: readonly TypeName[] = types.map((type) => (type === 'integer' ? 'number' : type));
    allowed = new Set([...allowed].filter((type) => names.includes(type)));
    if (types.includes('integer') && !types.includes('number')) integer = true;
  }
  const hints = constraints.flatMap(({ has }) => [...has].flatMap((keyword) => KEYWORDS.get(keyword)?.of ?? []));
  const meant: readonly TypeName[] = named || hints.length === 0 ? BASE : hints;
  const generated = new Set([...allowed].filter((type) => meant.includes(type)));
  return { allowed, generated, integer };
}

/**
 * Combines the string rules of subschemas that must all hold: the largest minimum, the smallest maximum, and every
 * pattern and format. Does not notice contradictions.
 */
export function mergeStrings(constraints: readonly Subschema[]): StringRules {
  const unique = (list: readonly (string | undefined)[]) => [...new Set(list.filter((one) => one !== undefined))];
  return {
    min: Math.max(0, ...constraints.map(({ minLength }) => minLength ?? 0)),
    max: Math.min(Infinity, ...constraints.map(({ maxLength }) => maxLength ?? Infinity)),
    patterns: unique(constraints.map(({ pattern }) => pattern)),
    // The cast is safe, because `unique` has dropped undefined values.
    formats: unique(constraints.map(({ format }) => format)) as StringFormat[],
  };
}

/**
 * Combines the number rules of subschemas that must all hold. `integer` is the member of the same name that
 * `mergeTypes` returns.
 */
export function mergeNumbers(constraints: readonly Subschema[], integer: boolean): NumberRules {
  const all = (pick: (schema: Subschema) => number | undefined) => constraints.map(pick).filter((n) => n !== undefined);
  const minimum = all((schema) => schema.minimum);
  const maximum = all((schema) => schema.maximum);
  const above = all((schema) => schema.exclusiveMinimum);
  const below = all((schema) => schema.exclusiveMaximum);
  return {
    integer,
    ...(minimum.length > 0 ? { minimum: Math.max(...minimum) } : {}),
    ...(maximum.length > 0 ? { maximum: Math.min(...maximum) } : {}),
    ...(above.length > 0 ? { above: Math.max(...above) } : {}),
    ...(below.length > 0 ? { below: Math.min(...below) } : {}),
    multipleOf: [...new Set(all((schema) => schema.multipleOf))],
  };
}
