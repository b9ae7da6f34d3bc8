import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../lib/contract/answer-shape.ts';
import { AssayError } from '../../lib/errors.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import { keysAreUnique, validator } from './oracle.ts';
import { allowedTokens, generate, randomFrom } from './random-model.ts';
import { objectSchema } from './random-schemas.ts';
import { largeVocabulary, smallVocabulary } from './vocabularies.ts';

/** Schemas of each property; ASSAY_PROPERTY_RUNS sets thousands. */
const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 60);
/** Answers for each schema: with thousands of schemas one is enough. */
const answers = numRuns > 1_000 ? 1 : 3;

/** Returns the shape of an accepted schema; null for a refused one, which must be refused in the documented way. */
function accepted(schema: object) {
  try {
    return checkAnswerSchema({ schema, param: 'schema' });
  } catch (error) {
    if (error instanceof AssayError && error.code === 'unsupported_schema') return null;
    throw error;
  }
}

const small = smallVocabulary();

describe('answers of a model that chooses at random', () => {
  test.each([
    ['small', small, numRuns],
    ['150,000 tokens', largeVocabulary(), Math.ceil(numRuns / 3)],
  ] as const)(
    'are valid and end: %s',
    (_, vocabulary, runs) => {
      let taken = 0;
      let ended = 0;
      fc.assert(
        fc.property(objectSchema, fc.nat(), (schema, seed) => {
          const shape = accepted(schema);
          if (!shape) return;
          taken++;
          const valid = validator(schema);
          const random = randomFrom(seed);
          for (let answer = 0; answer < answers; answer++) {
            const constraint = shapeConstraint(shape, vocabulary);
            const { whole } = generate(constraint, vocabulary, random);
            // A list of at least two items that contain it again hardly ever ends by chance.
            if (!whole) {
              JSON.parse(constraint.closed());
              continue;
            }
            ended++;
            const text = constraint.text();
            expect(constraint.closed()).toBe(text);
            expect([text, keysAreUnique(text)]).toEqual([text, true]);
            expect([text, valid(JSON.parse(text))]).toEqual([text, true]);
          }
        }),
        { numRuns: runs, seed: process.env.ASSAY_PROPERTY_RUNS ? Date.now() : 1, interruptAfterTimeLimit: 3_600_000 },
      );
      // The generator must mostly produce accepted schemas, or nothing is tested.
      expect(taken).toBeGreaterThan(runs / 2);
      expect(ended).toBeGreaterThan(0.95 * taken * answers);
      if (process.env.ASSAY_PROPERTY_RUNS) console.log(`${taken} of ${runs} schemas accepted, all answers valid`);
    },
    3_600_000,
  );
});

test('a mask is what brute force finds, and a cut answer is valid JSON at every step', () => {
  const isAllowed = (constraint: Constraint, token: number): boolean => {
    try {
      constraint.fork().accept(token);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(objectSchema, fc.nat(), (schema, seed) => {
      const shape = accepted(schema);
      if (!shape) return;
      const schemaOnly: JsonSchema = (shape as { schema: JsonSchema }).schema;
      const answer = shapeConstraint({ kind: 'schema', schema: schemaOnly }, small);
      let steps = 0;
      let settled = '';
      const check = (constraint: Constraint) => {
        const closed = constraint.closed();
        expect(() => JSON.parse(closed)).not.toThrow();
        // What was settled before stays, wherever the answer is cut.
        expect([settled, closed.startsWith(settled), answer.settled().startsWith(settled)]).toEqual([
          settled,
          true,
          true,
        ]);
        settled = answer.settled();
        if (steps++ % 4 !== 0) return;
        const allowed = new Set(allowedTokens(constraint, small));
        for (let token = 0; token < small.size; token++) {
          if (isAllowed(constraint, token) !== allowed.has(token)) {
            expect([
              constraint.text(),
              new TextDecoder().decode(small.bytes(token) ?? undefined),
              allowed.has(token),
            ]).toBe('as brute force');
          }
        }
      };
      generate(answer, small, randomFrom(seed), { before: check });
    }),
    { numRuns: Math.ceil(numRuns / 3), seed: 2 },
  );
}, 3_600_000);
