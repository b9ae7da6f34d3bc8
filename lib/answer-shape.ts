/**
 * Describes the shape of an extract answer, before it becomes a grammar. `keys` alone: exactly these, each a string or
 * null. `schema`: checked JSON Schema (shorthand already expanded); with `keys` too, they select and order its
 * properties. `open`: a flat object of the fields that the instruction names. `any`: any JSON object (`response_format`
 * of chat).
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
