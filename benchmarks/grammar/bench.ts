import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { at } from '../../lib/at.ts';
import type { JsonSchema } from '../../lib/contract/answer-shape.ts';
import { AssayError } from '../../lib/errors.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { prepareVocabulary, shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import { HOSTILE } from '../../tests/grammar/hostile-schemas.ts';
import { generate, pick, randomFrom } from '../../tests/grammar/random-model.ts';
import { largeVocabulary } from '../../tests/grammar/vocabularies.ts';
import { median, quantile, type Report } from '../report.ts';
import { peerTokenizer, record, replay, replayWithPeer } from './peer.ts';
import { PEER_SHAPES, SHAPES } from './schemas.ts';

/** Number of random answers that are generated for each schema. */
const ANSWERS = 20;

/**
 * Measures three things. First, the time to compile schemas, and to compute a mask over 150,000 tokens at every choice
 * of random answers (`first`: in a grammar's first answer, when no mask is cached). Second, the time and memory for
 * schemas that are meant to be expensive, accepted and refused ones, also as the first schema of a process. Third, the
 * time for whole answers, in turn with `@huggingface/transformers-structured-output`.
 */
export async function run(report: Report): Promise<void> {
  const vocabulary = largeVocabulary();
  const ready = timed(() => prepareVocabulary(vocabulary));
  report({ system: 'assay', case: '150,000 tokens', metric: 'vocabulary ready', value: ready, unit: 'ms' });
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  const overall: number[] = [];
  for (const [name, shape] of SHAPES) {
    const say = (metric: string, value: number) => report({ system: 'assay', case: name, metric, value, unit: 'ms' });
    if (shape.kind === 'schema') {
      const times = Array.from({ length: 5 }, () =>
        timed(() => checkAnswerSchema({ schema: shape.schema, param: 'schema' })),
      );
      say('compile, first', at(times, 0));
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

  for (const [name, schema, outcome] of HOSTILE) {
    const system = `assay, ${outcome}`;
    const times = Array.from({ length: 5 }, () => timed(() => tryCompile(schema)));
    report({ system, case: name, metric: 'compile, median', value: median(times), unit: 'ms' });
    const { ms, cpuMs, peakMb, keptMb } = inNewProcess(schema);
    report({ system, case: name, metric: 'compile, first of a process', value: ms, unit: 'ms' });
    report({ system, case: name, metric: 'compile, first of a process, processor time', value: cpuMs, unit: 'ms' });
    report({ system, case: name, metric: 'memory, peak', value: peakMb, unit: 'MB' });
    report({ system, case: name, metric: 'memory, kept', value: keptMb, unit: 'MB' });
  }

  const tokenizer = peerTokenizer(vocabulary);
  for (const [name, schema] of PEER_SHAPES) {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let answer = 0; answer < ANSWERS; answer++) {
      const random = randomFrom(answer);
      let chosen = 0;
      const constraint = () => shapeConstraint({ kind: 'schema', schema }, vocabulary);
      const tokens = record(constraint(), (now) => pick(now, vocabulary, random, chosen++ > 40), 200);
      ours.push(replay(constraint(), tokens, mask) / tokens.length);
      theirs.push(replayWithPeer(tokenizer, schema, tokens, vocabulary.size) / tokens.length);
    }
    report({ system: 'assay', case: name, metric: 'per token of answer', value: median(ours), unit: 'ms' });
    report({
      system: 'structured-output',
      case: name,
      metric: 'per token of answer',
      value: median(theirs),
      unit: 'ms',
    });
    const ratio = median(theirs.map((time, i) => time / at(ours, i)));
    report({ system: 'structured-output / assay', case: name, metric: 'time ratio', value: ratio, unit: 'x' });
  }
}

/** Measures how a process that has compiled nothing before (`cold.ts`) compiles a schema. */
function inNewProcess(schema: JsonSchema): { ms: number; cpuMs: number; peakMb: number; keptMb: number } {
  const cold = fileURLToPath(new URL('cold.ts', import.meta.url));
  const flags = ['--expose-gc', '--max-semi-space-size=1'];
  return JSON.parse(
    execFileSync(process.execPath, [...flags, cold], { input: JSON.stringify(schema), encoding: 'utf8' }),
  );
}

function tryCompile(schema: JsonSchema): void {
  try {
    checkAnswerSchema({ schema, param: 'schema' });
  } catch (error) {
    if (!(error instanceof AssayError)) throw error;
  }
}

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
