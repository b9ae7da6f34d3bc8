import type { Json } from '../../answer-shape.ts';

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
