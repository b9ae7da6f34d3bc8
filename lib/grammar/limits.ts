/**
 * Limits on schemas and answers. They are counts, never times, so every machine accepts and refuses the same schemas.
 * Together they bound compiling a schema to about 100 ms and 64 MB, even for the first schema of a process
 * (`benchmarks/grammar`). Whatever takes memory also costs steps: a row of an automaton, a member, a branch that
 * `oneOf` excludes.
 */
export const LIMITS = {
  /**
   * Objects and arrays that are open at once in one schema. Leaves four of a body's 64 for those around a schema, also
   * in the body that an edge sends to a box, which has shorthand written out.
   */
  schemaDepth: 60,
  /** JSON values in one schema, annotations included. */
  schemaValues: 10_000,
  /** UTF-16 code units in the names and texts of one schema. */
  schemaCharacters: 250_000,
  /** Nodes after `$ref`, `allOf`, `anyOf` and `oneOf` are resolved. */
  nodes: 4_000,
  /** Alternatives of one node. */
  alternatives: 256,
  /** Steps of compiling one schema (`fuel.ts`). */
  steps: 400_000,
  /** Steps of compiling several schemas on one shared budget (`sharedFuel`). */
  sharedSteps: 1_600_000,
  /** Steps for each value in a schema, annotations included. */
  stepsPerValue: 10,
  /**
   * Steps for each byte of the shortest answer: the grammar writes most of these bytes itself, which costs work at each
   * request.
   */
  stepsPerByte: 4,
  /**
   * Depth of the recursion, through references and levels, that checks an `enum` or `const` value against its
   * subschema.
   */
  matchDepth: 400,
  /** Different values of `multipleOf` that apply to one number. */
  multiples: 16,
  /** Ranges that `oneOf` excludes from one number; single values are not counted. */
  numberExclusions: 16,
  /** Objects and arrays that are open at once in an answer. */
  answerDepth: 32,
  /** Bytes of the shortest answer that a schema allows (`minItems`, `minLength` and long names add up). */
  shortestAnswer: 65_536,
  /** Characters of one `pattern`. */
  patternLength: 1_000,
  /** States of a pattern's nondeterministic automaton, in which `{n,m}` is written out as copies. */
  patternParts: 4_000,
  /** States of the deterministic automaton of one string (all its patterns and formats together). */
  stringStates: 2_000,
  /** Entries of the table of shortest continuations, for a string with a `minLength` and a `pattern` or `format`. */
  stringRests: 500_000,
} as const;
