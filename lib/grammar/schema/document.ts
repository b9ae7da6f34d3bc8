import type { Json } from '../../answer-shape.ts';

export const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'] as const;
export type TypeName = (typeof TYPES)[number];

/** A JSON Schema document, parsed: every place where a schema stands has an index; the root is 0. */
export interface SchemaDocument {
  subschemas: readonly Subschema[];
  /** How many JSON values it is made of, annotations included. */
  values: number;
}

/** One schema of a document. `true` is an empty one, `false` has `nothing`. Children are indexes into the document. */
export interface Subschema {
  /** Where it stands in the request, for messages. */
  path: string;
  /** `false`: no value fits. */
  nothing: boolean;
  /** The keywords written here. */
  has: ReadonlySet<string>;
  types?: readonly TypeName[];
  /** `enum`, or the one value of `const`. Both: one entry each. */
  values: readonly (readonly Json[])[];
  ref?: number;
  allOf: readonly number[];
  anyOf?: readonly number[];
  oneOf?: readonly number[];
  /** In the order sent. */
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
