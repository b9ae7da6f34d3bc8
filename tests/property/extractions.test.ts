import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Task, TaskAnswer } from '../../lib/backend.ts';
import { QuotedTexts } from '../../lib/grammar/text/quoted-texts.ts';
import { parseModelId } from '../../lib/model-id.ts';
import { batchOfExtractions, extractionsBody } from '../../lib/questions/extractions.ts';
import { ExtractionsRequest } from '../../lib/schema/extractions-request.ts';
import { normalised } from '../../lib/tasks/logprobs.ts';
import { taskGrammar } from '../../lib/tasks/task-grammar.ts';
import { validate } from '../../lib/validation/validate.ts';
import { fieldProbabilities } from '../../runtime/worker/task-job.ts';
import { answerProblems } from '../contract/bodies.ts';
import { allowedTokens } from '../grammar/random-model.ts';
import { smallVocabulary } from '../grammar/vocabularies.ts';

/* A model that chooses at random among the tokens that the grammar allows must not be able to break an extraction. */

const vocabulary = smallVocabulary();
const MOST_CHOICES = 60;

function answerOf(task: Task, quoted: QuotedTexts, next: () => number): TaskAnswer {
  const { name } = task;
  if (task.type === 'decide') {
    const optionLogprobs = normalised(task.options!.map(() => -(next() % 20)));
    return { name, json: '{"value":""}', optionLogprobs };
  }
  const constraint = taskGrammar(task, vocabulary, quoted).constraint();
  const choices: { logprob: number; start: number; end: number }[] = [];
  // The first choice comes before what the grammar forces, as in the engine.
  for (let i = 0; i < MOST_CHOICES && !constraint.complete; i++) {
    const allowed = allowedTokens(constraint, vocabulary);
    const start = constraint.length;
    constraint.accept(allowed[next() % allowed.length]!);
    choices.push({ logprob: -0.1, start, end: constraint.length });
    constraint.takeForced();
  }
  return {
    name,
    json: constraint.closed(),
    fields: fieldProbabilities(constraint, choices),
    absent: (next() % 100) / 100,
    certainty: 0.5,
  };
}

const word = fc.constantFrom('Ida', 'order', '7-113', '49.90', '😀', 'é', '"', '\\', '\n', '2026-03-01', '09:30', 'a');
const state = fc.array(word, { maxLength: 12 }).map((words) => words.join(' '));
const digits = fc.record(
  { integer: fc.boolean(), decimals: fc.nat({ max: 6 }), unit: fc.constant('EUR') },
  { requiredKeys: [] },
);
const value = fc.oneof(
  fc.record({ type: fc.constant('text'), free: fc.boolean() }),
  digits.map((more) => ({ type: 'number', ...more })),
  digits.map((more) => ({ type: 'duration', ...more, unit: 'days' })),
  fc.constantFrom({ type: 'date' }, { type: 'time' }, { type: 'datetime' }, { type: 'boolean' }),
  fc.constant({ type: 'enum', options: ['x', 'not stated'] }),
  fc
    .tuple(fc.constantFrom('text', 'number', 'date'), digits)
    .map(([items, more]) => ({ type: 'list', items, ...more })),
);
const field = fc.oneof(
  { weight: 4, arbitrary: value },
  value.map((one) => ({ type: 'object', fields: { a: one } })),
  fc.constantFrom(
    { type: 'estimate', min: 0, max: 50, step: 5 },
    { type: 'estimate', min: '2026-01-01', max: '2026-12-31', step: 'month' },
  ),
);
const request = fc.record({
  state,
  fields: fc.dictionary(fc.constantFrom('a', 'b', 'c d', '10'), field, { minKeys: 1 }),
  options: fc.record({ span_unit: fc.constantFrom('code_point', 'utf16') }),
});

interface Field {
  type: string;
  items?: string;
  free?: boolean;
  integer?: boolean;
  decimals?: number;
}

function checkValue(asked: Field, one: unknown) {
  const type = asked.items ?? asked.type;
  if (typeof one === 'number') {
    if (asked.integer) expect(Number.isInteger(one)).toBe(true);
    else if (asked.decimals !== undefined) expect(Number(one.toFixed(asked.decimals))).toBe(one);
    if (type === 'duration') expect(one).toBeGreaterThanOrEqual(0);
  } else if (type === 'date' || type === 'datetime') {
    const [day = '', time] = String(one).split('T');
    expect(new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10)).toBe(day);
    if (type === 'datetime') expect(time).toMatch(/^\d\d:\d\d(:\d\d)?$/);
  } else if (type === 'time') expect(one).toMatch(/^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/);
}

test('spans lie in the state and spell the value, numbers have their decimals, dates exist', () => {
  fc.assert(
    fc.property(request, fc.infiniteStream(fc.nat()), (sent, stream) => {
      const numbers = stream[Symbol.iterator]();
      const next = () => numbers.next().value as number;
      const valid = validate(ExtractionsRequest, sent);
      const batch = batchOfExtractions(valid);
      const quoted = new QuotedTexts([sent.state]);
      const answers = batch.tasks.map((task) => answerOf(task, quoted, next));
      const usage = { promptTokens: 9, stateTokens: 5, mediaTokens: 0, completionTokens: 3 };
      const answered = { model: parseModelId('assay/starter'), answers, finishReason: 'stop' as const, usage };
      const body = JSON.parse(extractionsBody(valid, answered, 'r', { abstainBelow: 0 }));
      expect(answerProblems('POST', '/v1/extractions', 200, 'application/json', body)).toEqual([]);
      const points = [...sent.state];
      const slice = ([start, end]: [number, number]) =>
        sent.options.span_unit === 'utf16' ? sent.state.slice(start, end) : points.slice(start, end).join('');
      for (const [name, asked] of Object.entries(sent.fields) as [string, Field][]) {
        const { type, value, guess, span, spans, confidences } = body.answers[name];
        expect(type).toBe(asked.type);
        const values = asked.type === 'list' ? value : [guess].filter((one) => one !== undefined);
        for (const one of values) checkValue(asked, one);
        if (span && type === 'text') expect(slice(span)).toBe(guess);
        if (spans) expect(spans.map(slice)).toEqual(value);
        if (type === 'text' && !asked.free && guess !== undefined) expect(span).toBeDefined();
        if (asked.items === 'text' && !asked.free) expect(spans).toHaveLength(value.length);
        if (type === 'list') expect(confidences).toHaveLength(value.length);
      }
    }),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
  );
});
