import type { Row } from '../row.ts';

const model = 'assay/starter';
const path = '/v1/systemone/batch';
const questions = { a: { type: 'noul', instructions: 'Does the customer want a refund?' } };
const many = (count: number) => Array.from({ length: count }, (_, i) => `state ${i}`);

const answered = { model, answers: { a: { type: 'noul', noul: 0.25 } }, usage: { input_tokens: 10, output_tokens: 1 } };
const quarter = { tasks: { probabilities: [[0.25, 0.75]] } };
const failed = (code: string, type: string, message: string) => ({ error: { type, message, code } });

const batch = (name: string, body: object, more: Omit<Row, 'name' | 'request'>): Row => ({
  name: `${path}: ${name}`,
  request: { path, json: { questions, ...body } },
  ...more,
});

/** The requests of Laya's clients, and answers in lines. */
export const systemOneBatch: readonly Row[] = [
  batch(
    'each state has its answer, in order',
    { model, states: ['x', { n: 1 }, 'z'] },
    {
      script: quarter,
      expect: {
        json: { results: [answered, answered, answered], total_usage: { input_tokens: 30, output_tokens: 3 } },
      },
    },
  ),
  batch(
    'one state, and the fields of Laya that have no meaning here',
    { states: ['x'], lang: 'en', batch_size: 8, sort_by_length: true },
    {
      script: quarter,
      expect: {
        json: { results: [answered], total_usage: { input_tokens: 10, output_tokens: 1 } },
        calls: [
          {
            call: 'runTasks',
            batch: {
              input: { context: 'x' },
              tasks: [{ type: 'decide', kind: 'predicate', name: 'q0', options: ['yes', 'no'] }],
              probabilities: { calibrated: true },
            },
          },
          'admit',
        ],
      },
    },
  ),
  {
    name: `${path}: a state keeps its numbers and the order of its members`,
    request: { path, body: `{"states":[{"10":1.0,"2":{}}],"questions":${JSON.stringify(questions)}}` },
    expect: {
      calls: [
        { call: 'runTasks', batch: { input: { context: '{"10": 1.0, "2": {}}', state: '{"10":1.0,"2":{}}' } } },
        'admit',
      ],
    },
  },
  {
    name: `${path}: answers in lines`,
    script: quarter,
    request: { path, json: { model, states: ['x', 'y'], questions }, headers: { accept: 'application/x-ndjson' } },
    expect: {
      headers: { 'content-type': 'application/x-ndjson' },
      text: `${JSON.stringify(answered)}\n${JSON.stringify(answered)}\n{"total_usage":{"input_tokens":20,"output_tokens":2}}\n`,
    },
  },
  batch(
    'a state that cannot be answered has an error in its place',
    { model, states: ['x', 'y'] },
    {
      script: { tasks: { fail: { code: 'input_too_long', message: 'Too long.' } } },
      expect: {
        json: {
          results: [
            failed('input_too_long', 'invalid_request_error', 'Too long.'),
            failed('input_too_long', 'invalid_request_error', 'Too long.'),
          ],
          total_usage: { input_tokens: 0, output_tokens: 0 },
        },
      },
    },
  ),
  batch(
    'an error that concerns all states is that of the request',
    { model, states: ['x', 'y'] },
    {
      script: { tasks: { fail: { code: 'overloaded', message: 'Busy.', retryAfterSeconds: 7 } } },
      expect: {
        status: 429,
        like: { error: { code: 'overloaded' } },
        headers: { 'retry-after': '7' },
        calls: ['runTasks'],
      },
    },
  ),
  batch(
    'no states',
    { states: [] },
    { expect: { status: 422, like: { error: { code: 'invalid_value', param: 'states' } }, calls: [] } },
  ),
  batch(
    'no questions',
    { states: ['x'], questions: {} },
    { expect: { status: 422, like: { error: { code: 'invalid_value', param: 'questions' } } } },
  ),
  batch(
    'a state of another type',
    { states: ['x', 1] },
    { expect: { status: 422, like: { error: { code: 'invalid_type', param: 'states[1]' } } } },
  ),
  batch('as many states as a request may have', { states: many(256) }, { expect: { like: {} } }),
  batch(
    'too many states',
    { states: many(257) },
    { expect: { status: 413, like: { error: { code: 'request_too_large', param: 'states' } } } },
  ),
  {
    name: `${path}: without a key`,
    request: { path, json: { states: ['x'], questions }, headers: { authorization: null } },
    expect: { status: 401, like: { error: { code: 'missing_api_key' } } },
  },
];
