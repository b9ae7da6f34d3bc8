import type { Expectation, Row, RowRequest } from '../row.ts';

const path = '/v1/tasks';
const good = {
  model: 'assay/starter',
  context: 'I want my money back!',
  tasks: [{ type: 'decide', name: 'a', question: 'Angry?' }],
};
const strangerKey = { authorization: 'Bearer stranger' };
const otherType = { 'content-type': 'text/plain' };
const guard = { loopbackOnly: true, allowOrigins: [] };
const noRight = { 'test-key': { models: ['other/*'] } };

const row = (
  name: string,
  request: RowRequest,
  expect: Expectation,
  rest: Omit<Row, 'name' | 'request' | 'expect'> = {},
): Row => ({
  name,
  request,
  expect,
  ...rest,
});

/**
 * docs/interface.md, D-15: each row breaks the rules of one class and of all later classes, and the first one is
 * reported.
 */
export const decisionOrder: readonly Row[] = [
  row(
    'method before the key',
    { path, method: 'GET', headers: strangerKey },
    {
      status: 405,
      error: { code: 'method_not_allowed', type: 'invalid_request_error' },
      headers: { allow: 'POST' },
      calls: [],
    },
  ),
  row(
    'guard before the key',
    { path, body: '{', headers: { ...strangerKey, ...otherType, host: 'evil.example' } },
    { status: 403, error: 'forbidden_origin', calls: [] },
    { app: { guard } },
  ),
  row(
    'key before content type',
    { path, body: '{', headers: { ...strangerKey, ...otherType } },
    { status: 401, error: 'invalid_api_key', calls: [] },
  ),
  row(
    'content type before syntax',
    { path, body: '{', headers: otherType },
    { status: 400, error: 'unsupported_media_type', calls: [] },
  ),
  row(
    'syntax before unknown fields',
    { path, body: '{"stream":true' },
    { status: 400, error: 'malformed_json', calls: [] },
  ),
  row(
    'unknown fields before values, wherever they stand',
    { path, json: { ...good, temperature: 9, tasks: [{ ...good.tasks[0], question: '', stream: true }] } },
    { status: 400, error: { code: 'unknown_field', param: 'tasks[0].stream' }, calls: [] },
    { app: { keys: noRight } },
  ),
  row(
    'the context/messages rule before values',
    { path, json: { ...good, temperature: 9, messages: [] } },
    { status: 400, error: { code: 'conflicting_input', param: 'messages' }, calls: [] },
    { app: { keys: noRight } },
  ),
  row(
    'values before the right to the model',
    { path, json: { ...good, temperature: 9 } },
    { status: 422, error: { code: 'invalid_value', param: 'temperature' }, calls: [] },
    { app: { keys: noRight } },
  ),
  row(
    'a header before the right to the model',
    { path, json: good, headers: { 'assay-priority': 'high' } },
    { status: 422, error: { code: 'invalid_value', param: 'assay-priority' }, calls: [] },
    { app: { keys: noRight } },
  ),
  row(
    'an unsupported schema before the right to the model',
    {
      path,
      json: {
        ...good,
        tasks: [{ type: 'extract', name: 'a', instruction: 'i', schema: { type: 'object', not: { type: 'null' } } }],
      },
    },
    { status: 422, error: { code: 'unsupported_schema', param: 'tasks[0].schema.not' }, calls: [] },
    { app: { keys: noRight } },
  ),
  row(
    'the right to the model before whether it is known',
    { path, json: good },
    { status: 403, error: { code: 'model_not_allowed', param: 'model' }, calls: [] },
    { app: { keys: noRight }, script: { tasks: { fail: { code: 'model_not_found' } } } },
  ),
  row(
    'the quota before the body',
    { path, body: '{"stream":true' },
    {
      status: 429,
      error: { code: 'rate_limited', type: 'rate_limit_error' },
      headers: { 'retry-after': '7' },
      calls: [],
    },
    { app: { keys: noRight, quota: 0 } },
  ),
  row(
    'inside a class, the first in document order',
    { path, json: { max_output_tokens: 0, ...good, temperature: 9 } },
    { status: 422, error: { code: 'invalid_value', param: 'max_output_tokens' }, calls: [] },
  ),
  {
    name: 'a refused request costs quota',
    app: { quota: 2 },
    request: { path, json: { ...good, temperature: 9 } },
    expect: { status: 422, error: { code: 'invalid_value', param: 'temperature' } },
    next: [
      { request: { path, json: good }, expect: { status: 200 } },
      { request: { path, json: good }, expect: { status: 429, error: 'rate_limited' } },
    ],
  },
  {
    name: 'a request that the server was too busy for costs no quota',
    app: { quota: 1 },
    script: { tasks: { fail: { code: 'overloaded', retryAfterSeconds: 1 } } },
    request: { path, json: good },
    expect: { status: 429, error: 'overloaded' },
    next: [{ request: { path, json: good }, expect: { status: 429, error: 'overloaded' } }],
  },
  {
    name: 'a request for a model that the key may not use costs no quota',
    app: { keys: noRight, quota: 1 },
    request: { path, json: good },
    expect: { status: 403, error: 'model_not_allowed' },
    next: [{ request: { path, json: good }, expect: { status: 403, error: 'model_not_allowed' } }],
  },
];
