import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const path = '/v1/systemone';
const noul = { type: 'noul', instructions: 'Paid?' };
const choice = { type: 'choice', instructions: 'Which?', criteria: { a: null, b: null } };
const score = { type: 'score', instructions: 'How?', criteria: ['a', 'b'] };
const extract = { type: 'extract', instructions: 'The id.', keys: ['id'] };

type Steps = readonly (string | number)[];

/** A body that is refused before it reaches the backend, with the error body of System One servers. */
function refused(name: string, code: ErrorCode, steps: Steps | null, json: unknown, status = 422): Row {
  const detail = steps === null ? {} : { detail: [{ loc: ['body', ...steps], type: code }] };
  return {
    name: `/v1/systemone: ${status} ${code}: ${name}`,
    request: { path, json },
    expect: { status, like: { ...detail, error: { type: 'invalid_request_error', code } }, calls: [] },
  };
}
const body = (changes: object) => ({ model, state: 'x', questions: { a: noul }, ...changes });
const bad = (name: string, code: ErrorCode, steps: Steps, changes: object, status = 422) =>
  refused(name, code, steps, body(changes), status);
const badQuestion = (name: string, code: ErrorCode, steps: Steps, question: unknown, status = 422) =>
  bad(name, code, ['questions', 'b', ...steps], { questions: { a: noul, b: question } }, status);

export const systemOneErrors: readonly Row[] = [
  refused('a list', 'invalid_type', null, [body({})]),
  refused('a text', 'invalid_type', null, 'x'),
  refused('null', 'invalid_type', null, null),
  refused('empty', 'missing_field', ['state'], {}),
  refused('no state', 'missing_field', ['state'], body({ state: undefined })),
  refused('no questions', 'missing_field', ['questions'], body({ questions: undefined })),
  bad('model empty', 'invalid_value', ['model'], { model: '' }),
  bad('model a number', 'invalid_type', ['model'], { model: 5 }),
  bad('state a number', 'invalid_type', ['state'], { state: 7 }),
  bad('state true', 'invalid_type', ['state'], { state: true }),
  bad('state null', 'invalid_type', ['state'], { state: null }),
  bad('orders 0', 'invalid_value', ['orders'], { orders: 0 }),
  bad('orders 9', 'invalid_value', ['orders'], { orders: 9 }),
  bad('orders a text', 'invalid_type', ['orders'], { orders: '2' }),
  bad('abstain_below above 1', 'invalid_value', ['abstain_below'], { abstain_below: 1.1 }),
  bad('abstain_below below 0', 'invalid_value', ['abstain_below'], { abstain_below: -1 }),
  bad('confidence of another name', 'invalid_value', ['confidence'], { confidence: 'gini' }),
  bad('calibrated a text', 'invalid_type', ['calibrated'], { calibrated: 'no' }),
  bad('max_output_tokens 0', 'invalid_value', ['max_output_tokens'], { max_output_tokens: 0 }),
  bad('max_output_tokens 4097', 'invalid_value', ['max_output_tokens'], { max_output_tokens: 4097 }),
  bad('images a text', 'invalid_type', ['images'], { images: 'AAAA' }),
  bad('assets a list', 'invalid_type', ['assets'], { assets: [] }),
  bad('audio an object', 'invalid_type', ['audio'], { audio: {} }),
  bad('videos a text', 'invalid_type', ['videos'], { videos: 'AAAA' }),

  bad('questions a list', 'invalid_type', ['questions'], { questions: [noul] }),
  bad('questions a text', 'invalid_type', ['questions'], { questions: 'Paid?' }),
  bad('questions null', 'invalid_type', ['questions'], { questions: null }),
  bad('questions empty', 'invalid_value', ['questions'], { questions: {} }),
  bad('questions: 401 of them', 'invalid_value', ['questions'], {
    questions: Object.fromEntries(Array.from({ length: 401 }, (_, i) => [`k${i}`, noul])),
  }),
  bad('a name that needs quotes', 'missing_field', ['questions', 'a b', 'type'], { questions: { 'a b': {} } }),
  badQuestion('a text', 'invalid_type', [], 'Paid?'),
  badQuestion('null', 'invalid_type', [], null),
  badQuestion('no type', 'missing_field', ['type'], { instructions: 'Paid?' }),
  badQuestion('a type of Decisions', 'invalid_value', ['type'], { type: 'predicate', instructions: 'Paid?' }),
  badQuestion('box, which needs eyes', 'invalid_value', ['type'], { type: 'box', instructions: 'The mug' }),
  badQuestion('type a number', 'invalid_type', ['type'], { type: 1 }),
  badQuestion('an unknown field', 'unknown_field', ['choices'], { ...noul, choices: [] }),
  badQuestion('instructions a number', 'invalid_type', ['instructions'], { ...noul, instructions: 7 }),
  badQuestion('instructions null, and nothing else', 'missing_field', ['instructions'], {
    ...noul,
    instructions: null,
  }),
  badQuestion('noul: nothing asked', 'missing_field', ['instructions'], { type: 'noul' }),
  badQuestion('noul: criteria a text', 'invalid_type', ['criteria'], { ...noul, criteria: 'x' }),
  badQuestion('noul: a criterion of another name', 'unknown_field', ['criteria', 'yes'], {
    ...noul,
    criteria: { yes: 'x' },
  }),
  badQuestion('noul: a criterion that is a number', 'invalid_type', ['criteria', 'true'], {
    ...noul,
    criteria: { true: 1 },
  }),
  badQuestion('choice: no criteria', 'missing_field', ['criteria'], { type: 'choice', instructions: 'Which?' }),
  badQuestion('choice: criteria null', 'invalid_type', ['criteria'], { ...choice, criteria: null }),
  badQuestion('choice: criteria a text', 'invalid_type', ['criteria'], { ...choice, criteria: 'a' }),
  badQuestion('choice: no label', 'invalid_value', ['criteria'], { ...choice, criteria: {} }),
  badQuestion('choice: no label in the list', 'invalid_value', ['criteria'], { ...choice, criteria: [] }),
  badQuestion('choice: 256 labels', 'invalid_value', ['criteria'], {
    ...choice,
    criteria: Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`k${i}`, null])),
  }),
  badQuestion('choice: 256 labels in the list', 'invalid_value', ['criteria'], {
    ...choice,
    criteria: Array.from({ length: 256 }, (_, i) => `k${i}`),
  }),
  badQuestion('choice: an empty label', 'invalid_value', ['criteria'], { ...choice, criteria: { '': null } }),
  badQuestion('choice: an empty label in the list', 'invalid_value', ['criteria', 0], { ...choice, criteria: [''] }),
  badQuestion('choice: a label too long', 'invalid_value', ['criteria'], {
    ...choice,
    criteria: { ['x'.repeat(1025)]: null },
  }),
  badQuestion('choice: a label twice', 'invalid_value', ['criteria', 1], { ...choice, criteria: ['a', 'a'] }),
  badQuestion('choice: a label that is a number', 'invalid_type', ['criteria', 0], { ...choice, criteria: [1, 2] }),
  badQuestion('choice: a label twice, with descriptions', 'invalid_value', ['criteria', 1], {
    ...choice,
    criteria: [{ key: 'a' }, { key: 'a', description: 'x' }],
  }),
  badQuestion('choice: a label without a key', 'missing_field', ['criteria', 0, 'key'], {
    ...choice,
    criteria: [{ description: 'x' }],
  }),
  badQuestion('choice: a description that is a number', 'invalid_type', ['criteria', 'a'], {
    ...choice,
    criteria: { a: 1 },
  }),
  badQuestion('score: no criteria', 'missing_field', ['criteria'], { type: 'score' }),
  badQuestion('score: criteria an object', 'invalid_type', ['criteria'], { ...score, criteria: { a: null } }),
  badQuestion('score: no level', 'invalid_value', ['criteria'], { ...score, criteria: [] }),
  badQuestion('score: an empty level', 'invalid_value', ['criteria', 0], { ...score, criteria: ['', 'b'] }),
  badQuestion('score: a level that is a number', 'invalid_type', ['criteria', 1], { ...score, criteria: ['a', 2] }),
  badQuestion('score: a level twice', 'invalid_value', ['criteria', 1], { ...score, criteria: ['a', 'a'] }),
  badQuestion('score: a level twice, as JSON', 'invalid_value', ['criteria', 1], {
    ...score,
    criteria: [{ a: 1 }, { a: 1 }],
  }),
  badQuestion('score: a level without description, called as another one', 'invalid_value', ['criteria', 1], {
    ...score,
    criteria: ['1', null],
  }),
  badQuestion('score: a level too long', 'invalid_value', ['criteria', 0], {
    ...score,
    criteria: ['x'.repeat(1025), 'b'],
  }),
  badQuestion('extract: keys empty', 'invalid_value', ['keys'], { ...extract, keys: [] }),
  badQuestion('extract: a key twice', 'invalid_value', ['keys', 1], { ...extract, keys: ['a', 'a'] }),
  badQuestion('extract: a schema that no answer could be held to', 'unsupported_schema', ['schema', 'not'], {
    ...extract,
    keys: undefined,
    schema: { not: { type: 'null' } },
  }),
  badQuestion('extract: a key that the schema lacks', 'invalid_value', ['keys', 0], {
    ...extract,
    keys: ['b'],
    schema: { a: 'string' },
  }),
  {
    name: '/v1/systemone: 422 invalid_value: a priority of another name',
    request: { path, json: body({}), headers: { 'assay-priority': 'high' } },
    expect: {
      status: 422,
      like: {
        detail: [{ loc: ['header', 'assay-priority'], type: 'invalid_value' }],
        error: { code: 'invalid_value', param: 'assay-priority' },
      },
      calls: [],
    },
  },
];
