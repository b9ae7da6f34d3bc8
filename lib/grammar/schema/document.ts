import type { Json } from '../../contract/answer-shape.ts';
import { LIMITS } from '../limits.ts';
import { refuse } from './problem.ts';

export const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'] as const;
export type TypeName = (typeof TYPES)[number];

/** Holds a parsed JSON Schema document. Every subschema has an index; the root is 0. */
export interface SchemaDocument {
  subschemas: readonly Subschema[];
  /** Number of JSON values in the document, annotations included, the root excluded. */
  values: number;
}

/**
 * Holds one subschema of a document by its keywords. The schema `true` has none; for `false`, `nothing` is true. Child
 * schemas and `ref` are indices into `SchemaDocument.subschemas`.
 */
export interface Subschema {
  /** Path of the subschema in the caller's input, for error messages. */
  path: string;
  /** True for the schemas `false` and `{"not": {}}`, against which no value is valid. */
  nothing: boolean;
  /** Names of the keywords that this subschema has. */
  has: ReadonlySet<string>;
  types?: readonly TypeName[];
  /**
   * Lists of allowed values: one for `enum`, and one with a single value for `const`. A value must be in all of them.
   */
  values: readonly (readonly Json[])[];
  ref?: number;
  allOf: readonly number[];
  anyOf?: readonly number[];
  oneOf?: readonly number[];
  /** Indices of the schemas of properties, in the order sent. */
  properties: ReadonlyMap<string, number>;
  required: readonly string[];
  additionalProperties?: number;
  /** Indices of the schemas of members whose name matches a pattern, by that pattern. */
  patternProperties: ReadonlyMap<string, number>;
  propertyNames?: number;
  unevaluatedProperties?: number;
  minProperties?: number;
  maxProperties?: number;
  items?: number;
  prefixItems: readonly number[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
}

/**
 * Message about a schema that is too deep. A shorthand is checked both as sent and as expanded, where each object takes
 * two levels.
 */
const TOO_DEEP = `is nested deeper than ${LIMITS.schemaDepth} (shorthand counts twice); use $defs and $ref.`;

/**
 * Returns the number of JSON values in a schema, root excluded. Called before all other work on the schema.
 *
 * @param path path of the schema in the caller's input, which an error names
 * @throws AssayError `unsupported_schema` for too many levels, values or characters (`LIMITS`); `invalid_value` for a
 *   number that is not finite
 */
export function checkSize(schema: Json, path: string): number {
  const open: [Json, number][] = [[schema, 1]];
  let values = 0;
  let characters = 0;
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [value, depth] = top;
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'number' && !Number.isFinite(value)) {
      refuse(path, 'has a number that is too large for a double; use a smaller one.', 'invalid_value');
    } else if (typeof value === 'object' && value !== null) {
      if (depth > LIMITS.schemaDepth) refuse(path, TOO_DEEP);
      const names = Object.keys(value);
      values += names.length;
      if (values > LIMITS.schemaValues) {
        refuse(path, `has more than ${LIMITS.schemaValues} values; make it smaller.`);
      }
      for (const name of names) {
        if (!Array.isArray(value)) characters += name.length;
        // The cast is safe, because the value is an object or array with this name or index.
        open.push([(value as { readonly [name: string]: Json })[name]!, depth + 1]);
      }
    }
    if (characters > LIMITS.schemaCharacters) {
      refuse(path, `has more than ${LIMITS.schemaCharacters} characters in its names and texts; shorten them.`);
    }
  }
  return values;
}
