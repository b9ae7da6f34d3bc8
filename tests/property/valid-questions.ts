import fc from 'fast-check';
import type { ValidRequest } from './valid-requests.ts';

/** Generates valid requests of both decision formats. */

const model = 'assay/starter';
const some = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const json = fc.oneof(some, fc.dictionary(some, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }));
const distinct = (least: number) => fc.uniqueArray(some, { minLength: least, maxLength: 4 });
const extract = fc.oneof(
  fc.record({ keys: distinct(1) }),
  fc.constant({ schema: { vendor: 'string', lines: [{ qty: 'integer' }] } }),
);

const part = fc.oneof(
  some.map((text) => ({ type: 'input_text', text })),
  fc.constant({ type: 'input_json', data: { a: [1, null, 'x'] } }),
  fc.constant({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
  fc.constant({ type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' }),
);
const content = fc.oneof(some, fc.array(part, { minLength: 1, maxLength: 3 }));
const message = fc.record({ role: fc.constantFrom('user', 'developer', 'system', 'assistant'), content });
const asked = { instructions: content };
const question = fc.oneof(
  fc.record({ type: fc.constant('predicate'), ...asked }),
  fc.record({
    type: fc.constant('choice'),
    ...asked,
    choices: distinct(1).map((values) => [{ value: true }, ...values.map((value) => ({ value, description: 'd' }))]),
  }),
  fc.record({
    type: fc.constant('score'),
    ...asked,
    levels: distinct(2).map((list) => list.map((label) => ({ label }))),
  }),
  fc.tuple(extract, content).map(([shape, instructions]) => ({ type: 'extract', instructions, ...shape })),
);
const decisions = fc.record({
  model: fc.constant(model),
  input: fc.oneof(some, fc.array(message, { minLength: 1, maxLength: 3 })),
  questions: fc.array(question, { minLength: 1, maxLength: 3 }),
  orders: fc.integer({ min: 1, max: 8 }),
  abstain_below: fc.double({ min: 0, max: 1, noNaN: true }),
});

const named = fc.oneof(
  fc.record({ type: fc.constant('noul'), instructions: json, criteria: fc.record({ true: json, false: json }) }),
  fc.record({
    type: fc.constant('choice'),
    instructions: json,
    criteria: fc.oneof(distinct(1), fc.dictionary(some, fc.oneof(json, fc.constant(null)), { minKeys: 1, maxKeys: 4 })),
  }),
  fc.record({ type: fc.constant('score'), instructions: json, criteria: distinct(1) }),
  extract.map((shape) => ({ type: 'extract', ...shape })),
);
const systemOne = fc.record({
  model: fc.constant(model),
  state: json,
  questions: fc.dictionary(fc.oneof(some, fc.constantFrom('__proto__', '10', 'constructor')), named, {
    minKeys: 1,
    maxKeys: 3,
  }),
  confidence: fc.constantFrom('entropy', 'margin'),
});

export const validQuestions: fc.Arbitrary<ValidRequest> = fc.oneof(
  decisions.map((body) => ({ path: '/v1/decisions', body })),
  systemOne.map((body) => ({ path: '/v1/systemone', body })),
);
