import { at } from '../../at.ts';
import type { Json } from '../../contract/answer-shape.ts';
import { isObject } from '../../json/property.ts';
import { TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { atScale, decimal } from '../number/decimal.ts';
import type { SchemaDocument, Subschema, TypeName } from '../schema/document.ts';
import { refuse } from '../schema/problem.ts';
import { UnsupportedPattern } from '../text/pattern.ts';

/** Holds the dependencies of `matches`. */
export interface MatchContext {
  document: SchemaDocument;
  /** Spends steps of the compile budget. */
  spend(steps: number): void;
  /** Tells whether a text satisfies the `pattern` and `format` of a subschema. */
  textFits(text: string, schema: Subschema): boolean;
  /** Tells whether a pattern of a subschema's `patternProperties` matches a name. */
  nameFits(name: string, pattern: string, schema: Subschema): boolean;
  /** Tells whether `list`, the values of an `enum` or `const`, contains a value. */
  holds(list: readonly Json[], value: Json): boolean;
}

/**
 * Tells whether a value is valid against the subschema at index `id`, as JSON Schema 2020-12 defines the keywords of
 * `KEYWORDS`. Used for the values of `enum` and `const`.
 *
 * @param depth depth of the recursion so far, down the value and along references
 * @throws AssayError `unsupported_schema` if the recursion is deeper than `LIMITS.matchDepth`
 */
export function matches(value: Json, id: number, context: MatchContext, depth = 0): boolean {
  const schema = at(context.document.subschemas, id);
  if (depth > LIMITS.matchDepth)
    refuse(schema.path, 'checking enum and const values leads here through too many references; use fewer.');
  const fits = (other: number) => matches(value, other, context, depth + 1);
  return (
    matchesAlone(value, id, context, depth) &&
    (schema.ref === undefined || fits(schema.ref)) &&
    schema.allOf.every(fits) &&
    (schema.anyOf === undefined || schema.anyOf.some(fits)) &&
    (schema.oneOf === undefined || schema.oneOf.filter(fits).length === 1)
  );
}

/**
 * Tells whether a value is valid against a subschema's keywords other than `$ref`, `allOf`, `anyOf` and `oneOf`.
 * Subschemas of its members and items are checked with `matches`.
 */
export function matchesAlone(value: Json, id: number, context: MatchContext, depth = 0): boolean {
  const schema = at(context.document.subschemas, id);
  context.spend(1);
  return (
    !schema.nothing &&
    (schema.types === undefined || schema.types.some((type) => isOfType(value, type))) &&
    schema.values.every((list) => context.holds(list, value)) &&
    contentMatches(value, schema, context, depth)
  );
}

function contentMatches(value: Json, schema: Subschema, context: MatchContext, depth: number): boolean {
  if (typeof value === 'string') return lengthMatches(value, schema, context) && context.textFits(value, schema);
  if (typeof value === 'number') return numberMatches(value, schema, context);
  if (Array.isArray(value)) return arrayMatches(value, schema, context, depth);
  return !isObject(value) || objectMatches(value, schema, context, depth);
}

function lengthMatches(value: string, { minLength, maxLength }: Subschema, context: MatchContext): boolean {
  if (minLength === undefined && maxLength === undefined) return true;
  context.spend(value.length >> 4);
  let length = 0;
  for (const _ of value) length++;
  return length >= (minLength ?? 0) && length <= (maxLength ?? Infinity);
}

function numberMatches(value: number, schema: Subschema, context: MatchContext): boolean {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = schema;
  if (value < minimum || value > maximum || value <= exclusiveMinimum || value >= exclusiveMaximum) return false;
  if (schema.multipleOf === undefined) return true;
  context.spend(8);
  const [a, b] = [decimal(value), decimal(schema.multipleOf)];
  const scale = Math.max(a.places, b.places);
  return atScale(a, scale) % atScale(b, scale) === 0n;
}

function arrayMatches(value: readonly Json[], schema: Subschema, context: MatchContext, depth: number): boolean {
  if (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity)) return false;
  if (schema.uniqueItems && new Set(value.map(canonical)).size < value.length) return false;
  return value.every((item, i) => {
    const id = schema.prefixItems[i] ?? schema.items;
    return id === undefined || matches(item, id, context, depth + 1);
  });
}

function objectMatches(
  value: { readonly [key: string]: Json },
  schema: Subschema,
  context: MatchContext,
  depth: number,
): boolean {
  if (!schema.required.every((name) => Object.hasOwn(value, name))) return false;
  const entries = Object.entries(value);
  if (entries.length < (schema.minProperties ?? 0) || entries.length > (schema.maxProperties ?? Infinity)) return false;
  if (schema.unevaluatedProperties !== undefined) {
    refuse(schema.path, 'an enum or const value cannot be checked against unevaluatedProperties; remove one of them.');
  }
  const fits = (part: Json, id: number | undefined) => id === undefined || matches(part, id, context, depth + 1);
  return entries.every(
    ([name, content]) =>
      fits(name, schema.propertyNames) &&
      memberSchemas(name, schema, context).every((id) => matches(content, id, context, depth + 1)),
  );
}

/** Returns the indices of the schemas that a subschema has for the value of the member with this name. */
export function memberSchemas(name: string, schema: Subschema, context: MatchContext): number[] {
  const own = schema.properties.get(name);
  const matching = [...schema.patternProperties].filter(([pattern]) => context.nameFits(name, pattern, schema));
  const found = [...(own === undefined ? [] : [own]), ...matching.map(([, id]) => id)];
  if (found.length > 0 || schema.additionalProperties === undefined) return found;
  return [schema.additionalProperties];
}

/** Tells whether a value has a type of JSON Schema. `integer` includes numbers such as 1.0. */
export function isOfType(value: Json, type: TypeName): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/**
 * Returns a text that two values share exactly if they are equal as JSON. Members are sorted by name, numbers are
 * written as JavaScript writes them.
 */
export function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return JSON.stringify(value, (_, part: Json) => {
    if (!isObject(part)) return part;
    // Entries as a list, because an object would move names such as `10` to the front.
    const names = Object.keys(part).sort();
    return { members: names.map((name) => [name, part[name]]) };
  });
}

/**
 * Returns the result of `work`. If `work` throws a `SyntaxError`, refuses the schema with `invalid_value`; if it throws
 * `TooLarge` or `UnsupportedPattern`, with `unsupported_schema`. Other errors are passed on.
 *
 * @param path path of the refused part, which the error names
 * @param what names the rule: the subject of the sentence in the message
 */
export function orRefuse<T>(path: string, work: () => T, what = 'this string'): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError) {
      refuse(path, `${what} is not a valid regular expression (ECMA-262 with the u flag).`, 'invalid_value');
    }
    if (error instanceof TooLarge) refuse(path, `${what} ${error.message}.`);
    if (error instanceof UnsupportedPattern) {
      refuse(
        path,
        `${what} ${error.message}, which cannot be enforced while an answer is generated; write it without that.`,
      );
    }
    throw error;
  }
}
