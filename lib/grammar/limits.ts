/**
 * Bounds on what a schema may ask for. They are counts, never times, so a schema is accepted or refused alike on every
 * machine; together they keep compiling under 100 ms and 64 MB (`benchmarks/grammar`).
 */
export const LIMITS = {
  /** Objects and lists open at once inside one schema. */
  schemaDepth: 64,
  /** JSON values in one schema, annotations included. */
  schemaValues: 10_000,
  /** Different node shapes after `$ref`, `allOf`, `anyOf` and `oneOf` are resolved. */
  nodes: 4_000,
  /** Alternatives that one place in the answer may have. */
  alternatives: 256,
  /** Elementary steps of resolving `allOf`, `anyOf` and `oneOf`, and of checking `enum` and `const`. */
  resolveSteps: 150_000,
  /** References and levels between an `enum` or `const` value and what it is checked against. */
  matchDepth: 400,
  /** Objects and lists open at once in an answer. */
  answerDepth: 32,
  /** Bytes of the shortest answer a schema allows (`minItems`, `minLength` and long names add up). */
  shortestAnswer: 65_536,
  /** Characters of one `pattern`. */
  patternLength: 1_000,
  /** States of a pattern before it is made deterministic; `{n,m}` is written out. */
  patternParts: 4_000,
  /** States of the deterministic automaton of one string (all its patterns and formats together). */
  stringStates: 2_000,
  /** Elementary steps of making all string automata of a schema. */
  stringSteps: 500_000,
} as const;
