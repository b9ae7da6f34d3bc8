import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../lib/contract/answer-shape.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import { validator } from './oracle.ts';
import { allowedTokens, randomFrom } from './random-model.ts';
import { smallVocabulary } from './vocabularies.ts';

/*
 * A value first, then a schema that allows it: each value of the documented form must be reachable, through any of the
 * tokens that spell it, with jump-forward and token healing between them.
 */

const vocabulary = smallVocabulary();

const text = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'x"y',
    'a\\b',
    '\n\t',
    'e\u0301',
    '👨‍👩‍👧',
    'שלום',
    '中文',
    '2024-01-31',
    '\u{10ffff}',
    '{"',
  ),
  fc.string({ unit: 'grapheme', maxLength: 5 }),
);
const number = fc.oneof(
  fc.constantFrom(0, 0.5, -0.25, 99.99, 123456789012.345, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER),
  fc.integer({ min: -1_000, max: 1_000 }),
);
const name = fc.constantFrom('a', 'b', 'ab', 'é', 'x"y', 'value', 'constructor', '😀');

interface Case {
  value: Json;
  schema: Json;
}

/** Returns a schema of the value's own type, with bounds that it just meets. */
const leaf: fc.Arbitrary<Case> = fc
  .tuple(fc.oneof(text, number, fc.constantFrom(true, false, null)), fc.nat(2), fc.nat(2))
  .map(([value, slack, form]): Case => {
    if (form === 0) return { value, schema: { enum: [slack, value, 'other'] } };
    if (typeof value === 'string') {
      const length = [...value].length;
      const bounds = { minLength: Math.max(0, length - slack), maxLength: length + slack };
      return { value, schema: { type: 'string', ...bounds, ...(form === 1 ? { pattern: `^[^]{${length}}$` } : {}) } };
    }
    if (typeof value === 'number') {
      const type = Number.isInteger(value) && form === 1 ? 'integer' : ['number', 'null'];
      return { value, schema: { type, minimum: value - slack, exclusiveMaximum: value + slack + 1 } };
    }
    return { value, schema: { type: value === null ? 'null' : 'boolean' } };
  });

const { node } = fc.letrec<{ node: Case; list: Case; object: Case; choice: Case }>((tie) => ({
  node: fc.oneof({ maxDepth: 3 }, leaf, tie('list'), tie('object'), tie('choice')),
  list: fc.tuple(fc.array(tie('node'), { maxLength: 3 }), fc.boolean()).map(([items, asPrefix]): Case => {
    const schemas = items.map(({ schema }) => schema);
    const rule = asPrefix ? { prefixItems: schemas, items: false } : { items: { anyOf: schemas } };
    const bounds = { minItems: items.length, maxItems: items.length + 1 };
    const value = items.map((item) => item.value);
    return { value, schema: { type: 'array', ...bounds, ...(items.length > 0 ? rule : {}) } };
  }),
  object: objectOf(tie('node')),
  choice: fc
    .tuple(tie('node'), fc.constantFrom('anyOf', 'oneOf', 'allOf'))
    .map(([{ value, schema }, keyword]): Case => {
      const other = typeof value === 'boolean' ? { type: 'null' } : { type: 'boolean' };
      return { value, schema: { [keyword]: keyword === 'allOf' ? [schema, true] : [other, schema] } };
    }),
}));

function objectOf(member: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return fc
    .tuple(fc.uniqueArray(fc.tuple(name, member), { selector: ([key]) => key, maxLength: 4 }), fc.nat(2))
    .map(([members, form]): Case => {
      const value = Object.fromEntries(members.map(([key, one]) => [key, one.value]));
      const schemas = members.map(([key, one]) => [key, one.schema] as const);
      if (form === 0 && members.length > 0) {
        const additionalProperties = { anyOf: schemas.map(([, schema]) => schema) };
        return { value, schema: { type: 'object', additionalProperties } };
      }
      const properties = Object.fromEntries([...schemas, ['zz', { type: 'null' }]]);
      const required = Object.keys(value).filter((_, i) => i % 2 === form % 2);
      return { value, schema: { type: 'object', properties, required, additionalProperties: false } };
    });
}

test('every value of the documented form can be generated', () => {
  const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 150);
  let reached = 0;
  fc.assert(
    fc.property(objectOf(node), fc.nat(), ({ value, schema }, seed) => {
      if (!validator(schema as object)(value)) return;
      const shape = checkAnswerSchema({ schema, param: 'schema' });
      const wanted = JSON.stringify(value);
      expect([JSON.stringify(schema), write(shape, wanted, randomFrom(seed))]).toEqual([
        JSON.stringify(schema),
        wanted,
      ]);
      reached++;
    }),
    { numRuns, seed: 5 },
  );
  expect(reached).toBeGreaterThan(numRuns / 2);
}, 3_600_000);

/**
 * Writes a text with tokens chosen at random among those that spell it. Returns the text up to where none is allowed.
 */
function write(shape: ReturnType<typeof checkAnswerSchema>, wanted: string, random: () => number): string {
  const bytes = new TextEncoder().encode(wanted);
  const constraint = shapeConstraint(shape, vocabulary);
  for (constraint.takeForced(); !constraint.complete; constraint.takeForced()) {
    const rest = bytes.subarray(constraint.length);
    const spelling = allowedTokens(constraint, vocabulary).filter((token) => {
      const own = vocabulary.bytes(token);
      return own !== null && own.length <= rest.length && own.every((byte, i) => byte === rest[i]);
    });
    if (spelling.length === 0) break;
    constraint.accept(spelling[Math.floor(random() * spelling.length)]!);
  }
  return constraint.text();
}
