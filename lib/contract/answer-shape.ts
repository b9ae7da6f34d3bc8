/**
 * Describes the shape of an extract answer or of a chat's JSON answer, before it is compiled to a grammar:
 * - `keys`: an object with exactly these members, each a string or null.
 * - `schema`: a checked JSON Schema (shorthand already expanded). `keys`, if present, select and order its properties.
 * - `open`: an object with members that the model chooses, whose values are strings, numbers, booleans or null.
 * - `any`: any JSON object (`response_format` `json_object` of a chat).
 */
export type AnswerShape =
  | { kind: 'keys'; keys: readonly string[] }
  | { kind: 'schema'; schema: JsonSchema; keys?: readonly string[] }
  | { kind: 'open' }
  | { kind: 'any' };

/** Represents a JSON value as parsed. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Represents a JSON Schema 2020-12 document that `lib/grammar` has accepted. */
export type JsonSchema = { readonly [key: string]: Json };
