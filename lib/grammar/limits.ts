/**
 * Bounds on schemas. They are counts, never times, so a schema is accepted or refused alike on every machine. Together
 * they keep compiling at about 100 ms and 64 MB, also for the first schema of a process (`benchmarks/grammar`). What
 * takes memory costs steps too: a row of an automaton, a member, a branch that `oneOf` excludes.
 */
export const LIMITS = {
  /** Objects and arrays that are open at once in one schema. */
  schemaDepth: 64,
  /** JSON values in one schema, annotations included. */
  schemaValues: 10_000,
  /** UTF-16 code units in the names and texts of one schema. */
  schemaCharacters: 250_000,
  /** Different node shapes after `$ref`, `allOf`, `anyOf` and `oneOf` are resolved. */
  nodes: 4_000,
  /** Alternatives of one node. */
  alternatives: 256,
  /** Steps of compiling one schema (`fuel.ts`). */
  steps: 400_000,
  /** Steps of compiling several schemas on one shared budget (`sharedFuel`). */
  sharedSteps: 1_600_000,
  /** Steps for each value in a schema, annotations included. */
  stepsPerValue: 10,
  /** Steps for each byte of the shortest answer. The grammar writes most of these bytes itself, at each request. */
  stepsPerByte: 4,
  /** References and levels between an `enum` or `const` value and the subschema it is checked against. */
  matchDepth: 400,
  /** Different `multipleOf` that hold for one number. */
  multiples: 16,
  /** Ranges that `oneOf` excludes from one number; single values are not counted. */
  numberExclusions: 16,
  /** Objects and arrays that are open at once in an answer. */
  answerDepth: 32,
  /** Bytes of the shortest answer a schema allows (`minItems`, `minLength` and long names add up). */
  shortestAnswer: 65_536,
  /** Characters of one `pattern`. */
  patternLength: 1_000,
  /** States of a pattern before it is made deterministic; `{n,m}` is written out. */
  patternParts: 4_000,
  /** States of the deterministic automaton of one string (all its patterns and formats together). */
  stringStates: 2_000,
  /** Entries of the table that tells how a string with a `pattern` or `format` reaches its `minLength`. */
  stringRests: 500_000,
} as const;
