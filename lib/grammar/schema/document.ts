import type { Json } from '../../answer-shape.ts';

export const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'] as const;
export type TypeName = (typeof TYPES)[number];

/** Holds a parsed JSON Schema document. Every subschema has an index; the root is 0. */
export interface SchemaDocument {
  subschemas: readonly Subschema[];
  /** The number of JSON values in it, annotations included. */
  values: number;
}

/**
 * Holds one subschema of a document. `true` has no keywords, `false` has `nothing`. Children are indices into the
 * document.
 */
export interface Subschema {
  /** Its path in the caller's input, for messages. */
  path: string;
  /** `false`: no value is valid. */
  nothing: boolean;
  /** The keywords of this subschema. */
  has: ReadonlySet<string>;
  types?: readonly TypeName[];
  /** The values of `enum`, or the one value of `const`; one entry for each keyword. */
  values: readonly (readonly Json[])[];
  ref?: number;
  allOf: readonly number[];
  anyOf?: readonly number[];
  oneOf?: readonly number[];
  /** Indices of the schemas of properties, in the order sent. */
  properties: ReadonlyMap<string, number>;
  required: readonly string[];
  additionalProperties?: number;
  items?: number;
  prefixItems: readonly number[];
  minItems?: number;
  maxItems?: number;
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
