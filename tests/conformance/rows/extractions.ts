import { expect } from 'vitest';
import type { ErrorCode } from '../../../lib/errors.ts';
import type { Script } from '../../scripted-backend/script.ts';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const state = 'Order 7-113 😀 cost 1,080.00, signed Ida Holm.';
const usage = { promptTokens: 40, stateTokens: 25, mediaTokens: 0, completionTokens: 3 };
const RUN = '/client/v4/accounts/any/ai/run/@cf/assay/starter';

const near = (value: number) => expect.closeTo(value, 9);
const nullable = (type: string, more: object = {}) => ({ type: [type, 'null'], ...more });
const shape = (schema: object) => ({
  kind: 'schema',
  schema: { type: 'object', properties: { a: schema }, required: ['a'], additionalProperties: false },
});
const text = { type: 'string', minLength: 1 };
const only = { temperature: 0, maxOutputTokens: 4096, probabilities: { calibrated: true }, media: [] };

/** One field named `a`, the task that it becomes, and its answer. */
function field(
  name: string,
  asked: object,
  task: object,
  script: Script['tasks'],
  answer: object,
  body: object = {},
): Row {
  const tasks = [{ name: 'f0', ...task }];
  return {
    name: `extractions: ${name}`,
    script: { tasks: { usage, ...script } },
    request: { path: '/v1/extractions', json: { model, state, fields: { a: asked }, ...body } },
    expect: {
      like: { object: 'extraction', model, answers: { a: answer }, truncated: false },
      calls: [{ call: 'runTasks', batch: { model, input: { context: state }, ...only, tasks } }, 'admit'],
    },
  };
}

const extracts = (instruction: string, asked: object, present: object, verbatim = false) => ({
  type: 'extract',
  instruction,
  shape: asked,
  present: shape(present),
  verbatim,
});
const says = (value: unknown) => ({ answers: [JSON.stringify({ a: value })] });
const given = { p_null: 0.25, confidence: 0.9 };
const valued = (type: string, value: unknown, more: object = {}) => ({ type, value, guess: value, ...given, ...more });

const number = { type: 'number', multipleOf: 0.01 };
const days = { type: 'integer', minimum: 0 };
const member = { type: 'string', minLength: 1 };

const fields: readonly Row[] = [
  field(
    'text is quoted',
    { type: 'text', instructions: 'Order number', unit: 'digits' },
    extracts('Order number (in digits)', { kind: 'keys', keys: ['a'] }, text, true),
    says('7-113'),
    valued('text', '7-113', { span: [6, 11] }),
  ),
  field(
    'the span counts code points',
    { type: 'text' },
    extracts('a', { kind: 'keys', keys: ['a'] }, text, true),
    says('Ida Holm'),
    valued('text', 'Ida Holm', { span: [36, 44] }),
  ),
  field(
    'the span counts UTF-16 on request',
    { type: 'text' },
    extracts('a', { kind: 'keys', keys: ['a'] }, text, true),
    says('Ida Holm'),
    valued('text', 'Ida Holm', { span: [37, 45] }),
    { options: { span_unit: 'utf16' } },
  ),
  field(
    'free text',
    { type: 'text', free: true },
    extracts('a', { kind: 'keys', keys: ['a'] }, text),
    says('An order'),
    valued('text', 'An order'),
  ),
  field(
    'the value is null above the threshold, and the guess stays',
    { type: 'text', null_threshold: 0.2 },
    extracts('a', { kind: 'keys', keys: ['a'] }, text, true),
    says('7-113'),
    { type: 'text', value: null, guess: '7-113', ...given, span: [6, 11] },
  ),
  field(
    'number',
    { type: 'number', decimals: 2, unit: 'USD' },
    extracts('a (in USD)', shape(nullable('number', { multipleOf: 0.01 })), number),
    says(1080),
    valued('number', 1080, { span: [19, 27] }),
  ),
  field(
    'date, with the date of today',
    { type: 'date' },
    extracts('a (today is 2026-11-28)', shape(nullable('string', { format: 'date' })), {
      type: 'string',
      format: 'date',
    }),
    says('2026-03-03'),
    valued('date', '2026-03-03'),
    { reference_date: '2026-11-28' },
  ),
  field(
    'time',
    { type: 'time' },
    extracts('a', shape(nullable('string', { format: 'local-time' })), { type: 'string', format: 'local-time' }),
    says('09:30'),
    valued('time', '09:30'),
  ),
  field(
    'datetime',
    { type: 'datetime' },
    extracts('a', shape(nullable('string', { format: 'local-date-time' })), {
      type: 'string',
      format: 'local-date-time',
    }),
    says('2026-03-03T09:30'),
    valued('datetime', '2026-03-03T09:30'),
  ),
  field(
    'duration',
    { type: 'duration', unit: 'days', integer: true, decimals: 2 },
    extracts('a (a length of time in days)', shape({ ...days, type: ['integer', 'null'] }), days),
    says(10),
    valued('duration', 10, { unit: 'days' }),
  ),
  field(
    'list of text',
    { type: 'list', items: 'text' },
    extracts(
      'a (all, in order)',
      shape({ type: 'array', items: text, maxItems: 64 }),
      { type: 'array', items: text, maxItems: 64 },
      true,
    ),
    says(['7-113', 'Ida Holm']),
    {
      type: 'list',
      value: ['7-113', 'Ida Holm'],
      spans: [
        [6, 11],
        [36, 44],
      ],
      confidences: [0.9, 0.9],
      confidence: 0.5,
    },
  ),
  field('empty list', { type: 'list', items: 'date' }, {}, says([]), {
    type: 'list',
    value: [],
    confidences: [],
    confidence: 0.5,
  }),
  field(
    'boolean',
    { type: 'boolean', instructions: 'Paid?' },
    { type: 'decide', question: 'Paid?', options: ['yes', 'no', 'not stated'], kind: 'choice' },
    { probabilities: [[0.6, 0.2, 0.2]] },
    { type: 'boolean', value: true, guess: true, p_null: near(0.2), confidence: near(0.75), p_true: near(0.75) },
  ),
  field(
    'enum, and an option of the same name as "not stated"',
    { type: 'enum', options: ['open', 'not stated'] },
    { type: 'decide', question: 'a', options: ['open', 'not stated', '(not stated)'], kind: 'choice' },
    { probabilities: [[0.1, 0.3, 0.6]] },
    {
      type: 'enum',
      value: null,
      guess: 'not stated',
      p_null: near(0.6),
      confidence: near(0.75),
      probabilities: { open: near(0.25), 'not stated': near(0.75) },
    },
  ),
  field(
    'estimate',
    { type: 'estimate', min: 0, max: 10, step: 5, unit: 'days' },
    { type: 'decide', question: 'a (in days)', options: ['below 0', '0', '5', '10', 'above 10'], kind: 'score' },
    { probabilities: [[0.1, 0.2, 0.4, 0.2, 0.1]] },
    { type: 'estimate', value: 5, mean: 5, median: 5, p10: 0, p90: 10, p_below: near(0.1), p_above: near(0.1) },
  ),
  field(
    'object',
    { type: 'object', fields: { id: { type: 'text' }, paid: { type: 'boolean' } } },
    extracts(
      'a',
      shape({
        type: 'object',
        properties: {
          id: { ...member, type: ['string', 'null'], description: 'id' },
          paid: { type: ['boolean', 'null'], description: 'paid' },
        },
        required: ['id', 'paid'],
        additionalProperties: false,
      }),
      {
        type: 'object',
        properties: {
          id: { ...member, type: ['string', 'null'], description: 'id' },
          paid: { type: ['boolean', 'null'], description: 'paid' },
        },
        required: ['id', 'paid'],
        additionalProperties: false,
      },
      true,
    ),
    says({ id: '7-113', paid: null }),
    {
      type: 'object',
      value: { id: '7-113', paid: null },
      fields: [
        { path: '/id', value: '7-113', probability: 0.9, evidence: { source: '/state', start: 6, end: 11 } },
        { path: '/paid', value: null, probability: 0.9, evidence: null },
      ],
      complete: true,
      confidence: 0.5,
    },
  ),
  field(
    'a cut value is no guess',
    { type: 'text' },
    {},
    { answers: ['{"a":"7-"}'], reached: 0, finishReason: 'length' },
    { type: 'text', value: null, p_null: 0.25, confidence: 0, x_cut: true },
  ),
];

const ask = { model, state, fields: { a: { type: 'text' } } };
const refused = (name: string, code: ErrorCode, param: string, changes: object, status = 400): Row => ({
  name: `extractions: ${status} ${code}: ${name}`,
  request: { path: '/v1/extractions', json: { ...ask, ...changes } },
  expect: { status, like: { error: { code, param } }, calls: [] },
});
const badField = (name: string, code: ErrorCode, at: string, asked: object): Row =>
  refused(name, code, `fields.a${at}`, { fields: { a: asked } });

const refusals: readonly Row[] = [
  refused('an unknown member', 'unknown_field', 'feilds', { feilds: {} }),
  refused('an unknown option', 'unknown_field', 'options.quantiles', { options: { quantiles: true } }),
  refused('neither fields nor questions', 'missing_field', 'fields', { fields: undefined }),
  refused('no fields', 'invalid_value', 'fields', { fields: {} }),
  refused('a stream', 'invalid_value', 'stream', { stream: true }),
  refused('a date that does not exist', 'invalid_value', 'reference_date', { reference_date: '2026-13-01' }),
  badField('an unknown member of a field', 'unknown_field', '.hint', { type: 'text', hint: 'x' }),
  badField('an unknown type', 'invalid_value', '.type', { type: 'money' }),
  badField('a list without items', 'missing_field', '.items', { type: 'list' }),
  badField('a threshold of a list', 'unknown_field', '.null_threshold', {
    type: 'list',
    items: 'text',
    null_threshold: 0.5,
  }),
  badField('a threshold of 0', 'invalid_value', '.null_threshold', { type: 'text', null_threshold: 0 }),
  badField('7 decimals', 'invalid_value', '.decimals', { type: 'number', decimals: 7 }),
  badField('a unit that is no time', 'invalid_value', '.unit', { type: 'duration', unit: 'parsecs' }),
  badField('an estimate from 5 to 5', 'invalid_value', '.max', { type: 'estimate', min: 5, max: 5 }),
  badField('an estimate from a number to a date', 'invalid_value', '.max', {
    type: 'estimate',
    min: 5,
    max: '2026-01-01',
  }),
  badField('a log scale from 0', 'invalid_value', '.scale', { type: 'estimate', min: 0, max: 5, scale: 'log' }),
  badField('a repeated option', 'invalid_value', '.options[1]', { type: 'enum', options: ['x', 'x'] }),
  badField('a forecast', 'unsupported_schema', '.type', { type: 'forecast', min: 0, max: 1, horizon: 2 }),
  badField('a threshold inside an object', 'invalid_value', '.fields.b.null_threshold', {
    type: 'object',
    fields: { b: { type: 'text', null_threshold: 0.5 } },
  }),
];

const run = (name: string, json: unknown, status: number, code: number): Row => ({
  name: `Workers AI's run path: ${status} and ${code}: ${name}`,
  request: { path: RUN, ...(typeof json === 'string' ? { body: json } : { json }) },
  expect: {
    status,
    json: { result: null, success: false, errors: [{ code, message: expect.any(String) }], messages: [] },
  },
});

export const extractionRows: readonly Row[] = [
  ...fields,
  ...refusals,
  ...['/v1/extraction', '/extraction', '/alpha/extractions', '/api/alpha/extractions'].map(
    (path): Row => ({
      name: `${path} is an alias`,
      script: { tasks: { usage, answers: ['{"a":"7-113"}'] } },
      request: { path, json: { ...ask, provider: {}, session_id: 's', trace: {}, user: 'u' } },
      expect: {
        json: {
          object: 'extraction',
          id: expect.any(String),
          model,
          answers: { a: valued('text', '7-113', { span: [6, 11] }) },
          truncated: false,
          usage: {
            state_tokens: 25,
            image_tokens: 0,
            schema_tokens: 15,
            input_tokens: 40,
            output_tokens: 3,
            passes: 1,
          },
        },
      },
    }),
  ),
  {
    name: 'extractions: fields named by numbers keep their places',
    script: { tasks: { usage, answers: ['{"z":"x"}', '{"10":"y"}', '{"2":"x"}'] } },
    request: {
      path: '/v1/extractions',
      body: `{"model":"${model}","state":"x y","fields":{"z":{"type":"text"},"10":{"type":"text"},"2":{"type":"text"}}}`,
    },
    expect: {
      like: { answers: { z: { value: 'x' }, 10: { value: 'y' }, 2: { value: 'x' } } },
      calls: [
        {
          call: 'runTasks',
          batch: { tasks: ['z', '10', '2'].map((key) => ({ shape: { kind: 'keys', keys: [key] } })) },
        },
        'admit',
      ],
    },
  },
  {
    name: 'extractions: a state of JSON is returned as text, which spans index',
    script: { tasks: { usage, answers: ['{"a":"x y"}'] } },
    request: { path: '/v1/extractions', json: { ...ask, state: ['x y'] } },
    expect: { like: { state_text: expect.stringContaining('x y') } },
  },
  {
    name: 'extractions: an empty state has no text to quote, and needs no model for it',
    script: { tasks: { usage, answers: ['{"n":5}'] } },
    request: {
      path: '/v1/extractions',
      json: {
        model,
        state: ' ',
        fields: { a: { type: 'text' }, n: { type: 'number' }, l: { type: 'list', items: 'text' } },
      },
    },
    expect: {
      like: {
        answers: {
          a: { type: 'text', value: null, p_null: 1, confidence: 0 },
          n: { type: 'number', guess: 5 },
          l: { type: 'list', value: [], spans: [], confidences: [] },
        },
      },
    },
  },
  {
    name: 'extractions: questions are answered from the same reading',
    script: { tasks: { usage, answers: ['{"value":"yes"}', '{"a":"7-113"}'], probabilities: [[0.75, 0.25], null] } },
    request: {
      path: '/v1/extractions',
      json: { ...ask, questions: { paid: { type: 'noul', instructions: 'Paid?' } } },
    },
    expect: { like: { answers: { paid: { type: 'noul', noul: near(0.75) }, a: { type: 'text', value: '7-113' } } } },
  },
  ...[RUN, '/ai/run/@cf/assay/starter'].map(
    (path): Row => ({
      name: `${path}: the path names the model, and the answer has an envelope`,
      script: { tasks: { usage, answers: ['{"a":"7-113"}'] } },
      request: { path, json: { ...ask, model: 'starter' } },
      expect: {
        like: { result: { model, answers: { a: { type: 'text', value: '7-113' } } }, success: true, errors: [] },
      },
    }),
  ),
  ...['clairic', '@cf/cloudflare/clairic', 'jev-latest', null].map(
    (name): Row => ({
      name: `extractions: ${name} means the loaded model`,
      script: { tasks: { usage, answers: ['{"a":"7-113"}'] } },
      request: { path: '/v1/extractions', json: { ...ask, model: name } },
      expect: { like: { model } },
    }),
  ),
  {
    name: "Workers AI's run path: cloudflare/clairic means the loaded model",
    script: { tasks: { usage, answers: ['{"a":"7-113"}'] } },
    request: { path: '/ai/run/@cf/cloudflare/clairic', json: { ...ask, model: 'clairic' } },
    expect: { like: { result: { model } } },
  },
  run('no JSON', '{', 400, 6003),
  run('an unknown member', { ...ask, feilds: {} }, 400, 5006),
  run('an unknown type', { ...ask, fields: { a: { type: 'money' } } }, 400, 5006),
  run('a forecast', { ...ask, fields: { a: { type: 'forecast' } } }, 422, 3030),
  {
    name: "Workers AI's run path: 401 without a key",
    request: { path: RUN, json: ask, headers: { authorization: null } },
    expect: { status: 401, like: { success: false, errors: [{ code: 10_000 }] } },
  },
];
