import type { Json, JsonSchema } from '../answer-shape.ts';
import { decimal } from '../grammar/number/decimal.ts';
import { KEYWORDS } from '../grammar/schema/keywords.ts';
import { isObject, refuse } from '../grammar/schema/problem.ts';
import { subschemas } from '../grammar/schema/subschemas.ts';
import { writtenNumber } from '../json/written-numbers.ts';
import { pathTo } from '../param-path.ts';

/**
 * Throws `unsupported_schema` if a schema has a whole number that a double changes, unless it is in an annotation or
 * bounds a value.
 * Otherwise, `{"const": 9007199254740993}` would be answered with 9007199254740992, which as an id is another one.
 *
 * @param schema a schema that `compileSchema` has accepted, as parsed from the request
 * @param path path of the schema in the caller's input, for errors
 */
export function refuseChangedNumbers(schema: JsonSchema, path: string): void {
  const large = [...subschemas(schema, path)].some(([one]) => isLarge(one.const) || isLarge(one.enum));
  for (const [one, at] of subschemas(schema, path)) {
    for (const [keyword, value] of Object.entries<Json>(one)) {
      const rule = KEYWORDS.get(keyword);
      if (rule?.holds !== 'value' || rule.annotation) continue;
      // No number is generated beyond 2^53, so a double may change a bound there, unless a constant is compared.
      if (large || !BOUNDS.has(keyword)) checkValue(one, keyword, value, pathTo(at, keyword));
    }
  }
}

const BOUNDS: ReadonlySet<string> = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
]);

/** Tells whether a value is or contains a number beyond 2^53. */
function isLarge(value: Json | undefined): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return typeof value === 'object' && value !== null && Object.values<Json>(value).some(isLarge);
}

/** Checks the numbers in the value that `holder` has under `key`. */
function checkValue(holder: object, key: string | number, value: Json, path: string): void {
  if (typeof value === 'number') {
    const digits = writtenNumber(holder, key);
    if (digits === undefined || !/^-?\d+$/.test(digits) || BigInt(digits) === decimal(value).units) return;
    refuse(path, `${digits} is beyond 2^53 and would become another number; use a smaller one, or a string.`);
  }
  // `parseJson` bounds the depth, so recursion is safe.
  if (Array.isArray(value)) value.forEach((item: Json, i) => void checkValue(value, i, item, pathTo(path, i)));
  else if (isObject(value)) {
    for (const [name, member] of Object.entries<Json>(value)) checkValue(value, name, member, pathTo(path, name));
  }
}
