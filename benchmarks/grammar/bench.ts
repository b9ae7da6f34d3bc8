import { checkAnswerSchema } from '../../lib/grammar/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/grammar/task-grammar.ts';
import { masksOf } from '../../lib/grammar/vocabulary/masks.ts';
import { generate, randomFrom } from '../../tests/grammar/random-model.ts';
import { largeVocabulary } from '../../tests/grammar/vocabularies.ts';
import { median, quantile, type Report } from '../report.ts';
import { SHAPES } from './schemas.ts';

/** Answers generated for each shape. */
const ANSWERS = 20;

/**
 * Compile time, and time of a mask over 150,000 tokens at every step of random answers. `first`: the first answer of a grammar, when no
 * mask was seen before.
 */
export async function run(report: Report): Promise<void> {
  const vocabulary = largeVocabulary();
  const began = performance.now();
  masksOf(vocabulary);
  report({
    system: 'assay',
    case: '150,000 tokens',
    metric: 'vocabulary ready',
    value: performance.now() - began,
    unit: 'ms',
  });
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  const overall: number[] = [];
  for (const [name, shape] of SHAPES) {
    const say = (metric: string, value: number) => report({ system: 'assay', case: name, metric, value, unit: 'ms' });
    if (shape.kind === 'schema') {
      const times = Array.from({ length: 5 }, () =>
        timed(() => checkAnswerSchema({ schema: shape.schema, param: 'schema' })),
      );
      say('compile, first', times[0]!);
      say('compile, median', median(times));
    }
    const steps: number[] = [];
    let first: number[] = [];
    for (let answer = 0; answer < ANSWERS; answer++) {
      generate(shapeConstraint(shape, vocabulary), vocabulary, randomFrom(answer), {
        limit: 400,
        before: (constraint) => steps.push(timed(() => constraint.mask(mask))),
      });
      if (answer === 0) first = [...steps];
    }
    overall.push(...steps);
    say('mask, first, median', median(first));
    say('mask, median', median(steps));
    say(
      'mask, 99%',
      quantile(
        steps.sort((a, b) => a - b),
        0.99,
      ),
    );
  }
  report({ system: 'assay', case: 'all', metric: 'mask, median', value: median(overall), unit: 'ms' });
}

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
