import { expect, test } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import { checkAnswerSchema } from '../../lib/grammar/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/grammar/task-grammar.ts';
import { HOSTILE } from './hostile-schemas.ts';
import { generate, randomFrom } from './random-model.ts';
import { smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();

/* How long each takes is measured by `benchmarks/grammar`. */
test.each(HOSTILE)('%s', (_, schema, outcome) => {
  if (outcome === 'refused') {
    const failure = expect(() => checkAnswerSchema({ schema, param: 'schema' }));
    failure.toThrow(AssayError);
    failure.toThrow(expect.objectContaining({ code: 'unsupported_schema' }));
    return;
  }
  const shape = checkAnswerSchema({ schema, param: 'schema' });
  const constraint = shapeConstraint(shape, vocabulary);
  generate(constraint, vocabulary, randomFrom(1), { limit: 200 });
  expect(() => JSON.parse(constraint.closed())).not.toThrow();
});
