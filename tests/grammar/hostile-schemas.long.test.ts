import { expect, test } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import { HOSTILE } from './hostile-schemas.ts';
import { validator } from './oracle.ts';
import { generate, randomFrom } from './random-model.ts';
import { smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();

/* `benchmarks/grammar` measures time and memory of each. */
test.each(HOSTILE)('%s', (name, schema, outcome) => {
  if (outcome === 'refused') {
    const failure = expect(() => checkAnswerSchema({ schema, param: 'schema' }));
    failure.toThrow(AssayError);
    failure.toThrow(expect.objectContaining({ code: 'unsupported_schema' }));
    return;
  }
  const shape = checkAnswerSchema({ schema, param: 'schema' });
  const constraint = shapeConstraint(shape, vocabulary);
  const { whole } = generate(constraint, vocabulary, randomFrom(1), { limit: 400 });
  const answer: unknown = JSON.parse(constraint.closed());
  // The oracle would take all of the 2^40 ways.
  if (whole && !name.startsWith('2^40')) expect(validator((shape as { schema: object }).schema)(answer)).toBe(true);
});
