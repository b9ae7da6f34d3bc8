import { expect, test } from 'vitest';
import type { Json, JsonSchema } from '../contract/answer-shape.ts';
import { AssayError } from '../errors.ts';
import { checkAnswerSchema } from '../tasks/check-answer-schema.ts';
import { sharedFuel } from './fuel.ts';
import { LIMITS } from './limits.ts';

const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const object = (properties: JsonSchema): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
const value = (schema: Json): JsonSchema => object({ v: schema });
const fields = (count: number, field: (i: number) => Json): JsonSchema =>
  object(Object.fromEntries(range(count).map((i) => [`p${i}`, field(i)])));
const nested = (levels: number): Json => range(levels - 1).reduce((inner: Json) => [inner], [] as Json);
const code = (schema: JsonSchema, fuel = sharedFuel()): string => {
  try {
    checkAnswerSchema({ schema, param: 'schema', fuel });
    return 'accepted';
  } catch (error) {
    if (error instanceof AssayError) return error.code;
    throw error;
  }
};

const tagged = (i: number) => object({ kind: { const: i }, note: { type: 'string' } });
const chain = (length: number): JsonSchema =>
  Object.fromEntries(range(length).map((i) => [`d${i}`, i === length - 1 ? {} : { $ref: `#/$defs/d${i + 1}` }]));

/** For each limit, a schema of a given size, and the largest size that is accepted. */
const BOUNDS: readonly (readonly [string, (size: number) => JsonSchema, number])[] = [
  ['schemaDepth', (n) => ({ ...value({}), default: nested(n - 1) }), LIMITS.schemaDepth],
  ['schemaValues', (n) => ({ type: 'object', examples: range(n - 2) }), LIMITS.schemaValues],
  ['schemaCharacters', (n) => ({ type: 'object', title: 'x'.repeat(n - 15) }), LIMITS.schemaCharacters],
  ['nodes', (n) => value({ prefixItems: range(n - 3).map((i) => ({ const: i })) }), LIMITS.nodes],
  [
    'alternatives',
    (n) => value({ anyOf: range(n).map((i) => ({ type: 'integer', minimum: i })) }),
    LIMITS.alternatives,
  ],
  ['matchDepth', (n) => ({ ...value({ enum: ['a'], $ref: '#/$defs/d0' }), $defs: chain(n) }), LIMITS.matchDepth],
  ['multiples', (n) => value({ allOf: range(n).map((i) => ({ multipleOf: i + 1 })) }), LIMITS.multiples],
  [
    'numberExclusions',
    (n) => value({ oneOf: [{ type: 'number' }, ...range(n).map((i) => ({ type: 'integer', multipleOf: i + 2 }))] }),
    LIMITS.numberExclusions,
  ],
  ['answerDepth', (n) => value({ const: nested(n - 1) }), LIMITS.answerDepth],
  ['shortestAnswer', (n) => value({ type: 'string', minLength: n - 9 }), LIMITS.shortestAnswer],
  ['patternLength', (n) => value({ pattern: `^[${'a'.repeat(n - 3)}]` }), LIMITS.patternLength],
  // The pattern has two states for each `a`, and six more.
  ['patternParts', (n) => value({ pattern: `^a{0,${n}}$` }), (LIMITS.patternParts - 6) / 2],
  // The automaton of the longer strings has a state for each length up to n, and one for all others.
  [
    'stringStates',
    (n) => value({ oneOf: [{ type: 'string' }, { type: 'string', maxLength: n }] }),
    LIMITS.stringStates - 2,
  ],
  ['stringRests', (n) => value({ pattern: '^[a-z]{9}', minLength: n }), LIMITS.stringRests / 10 - 1],
  // The cost of these schemas is counted while they are compiled, so the largest sizes were found by trial.
  ['steps of patterns', (n) => fields(n, (i) => ({ pattern: `^[a-z]{40}-${i}$` })), 273],
  ['steps of one wide pattern', (n) => value({ pattern: `^(${letters(300).join('|')}){${n}}$` }), 5],
  ['steps of branches that are told apart', (n) => value({ oneOf: range(n).map(tagged) }), 133],
];

function letters(count: number): string[] {
  return range(count).map((i) => String.fromCodePoint(0x4e00 + 2 * i));
}

test.each(BOUNDS)('%s', (_, schema, largest) => {
  expect([code(schema(largest)), code(schema(largest + 1))]).toEqual(['accepted', 'unsupported_schema']);
});

test('sharedSteps: schemas on one budget share them', () => {
  const fuel = sharedFuel();
  const schema = fields(267, (i) => ({ pattern: `^[a-z]{40}-${i}$` }));
  const accepted = range(8).filter(() => code(schema, fuel) === 'accepted');
  expect(accepted).toHaveLength(Math.floor(LIMITS.sharedSteps / LIMITS.steps));
});

test('long forced answers use up steps, too', () => {
  const fuel = sharedFuel();
  const schema = value({ type: 'array', minItems: 30_000, items: { const: 1 } });
  const accepted = range(20).filter(() => code(schema, fuel) === 'accepted');
  expect(accepted).toHaveLength(Math.floor(LIMITS.sharedSteps / (LIMITS.stepsPerByte * 60_000)));
});
