import type { ErrorType } from '../../../lib/error-status.ts';
import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row, RowRequest } from '../row.ts';

const model = 'assay/starter';
const context = 'I want my money back!';
const decide = { type: 'decide', name: 'a', question: 'Angry?' };
const extract = { type: 'extract', name: 'b', instruction: 'The order.' };
const batch = (changes: object = {}) => ({ model, context, tasks: [decide], ...changes });
const tasks = (...list: object[]) => batch({ tasks: list });
const paths = ['/v1/tasks', '/v1/decide-extract', '/decide', '/extract'];
const least = (path: string): object => {
  if (path === '/decide') return { model, context, question: 'Angry?' };
  return path === '/extract' ? { model, context, instruction: 'The order.' } : batch();
};

const TYPES: Record<number, ErrorType> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'server_error',
};

/** A request that is refused before it reaches the backend. */
function refused(
  name: string,
  status: number,
  code: ErrorCode,
  param: string | null,
  request: RowRequest,
  app?: Row['app'],
): Row {
  const error = { code, type: TYPES[status]!, ...(param === null ? {} : { param }) };
  return { name: `${status} ${code}: ${name}`, ...(app ? { app } : {}), request, expect: { status, error, calls: [] } };
}
const badTasks = (name: string, status: number, code: ErrorCode, param: string | null, json: unknown) =>
  refused(name, status, code, param, { path: '/v1/tasks', json });

/** A failure that the backend reports. */
const failed = (status: number, code: ErrorCode, param?: string): readonly Row[] =>
  paths.map((path) => ({
    name: `${path}: ${status} ${code}, said by the backend`,
    script: { tasks: { fail: { code, message: 'Do this.', ...(param ? { param } : {}) } } },
    request: { path, json: least(path) },
    expect: {
      status,
      error: { code, type: TYPES[status]!, message: /^Do this\.$/, ...(param ? { param } : {}) },
      calls: ['runTasks'],
    },
  }));

/** docs/interface.md, D-16 and D-17: each code at its status; and `param` as a path. */
export const decisionErrors: readonly Row[] = [
  ...paths.flatMap((path) => [
    refused(`${path}, not JSON`, 400, 'malformed_json', null, { path, body: '{' }),
    refused(`${path}, another content type`, 400, 'unsupported_media_type', null, {
      path,
      body: '{}',
      headers: { 'content-type': 'text/plain' },
    }),
    refused(`${path}, stream is an unknown field`, 400, 'unknown_field', 'stream', {
      path,
      json: { ...least(path), stream: false },
    }),
    refused(`${path}, neither context nor messages`, 400, 'missing_input', null, {
      path,
      json: { ...least(path), context: undefined },
    }),
    refused(`${path}, context and messages`, 400, 'conflicting_input', 'messages', {
      path,
      json: { ...least(path), messages: [{ role: 'user', content: '' }] },
    }),
    refused(`${path}, no model`, 422, 'missing_field', 'model', { path, json: { ...least(path), model: undefined } }),
    refused(`${path}, null for an optional field`, 422, 'invalid_type', 'temperature', {
      path,
      json: { ...least(path), temperature: null },
    }),
    refused(`${path}, temperature over 2`, 422, 'invalid_value', 'temperature', {
      path,
      json: { ...least(path), temperature: 2.1 },
    }),
    refused(`${path}, temperature below 0`, 422, 'invalid_value', 'temperature', {
      path,
      json: { ...least(path), temperature: -0.1 },
    }),
    refused(`${path}, max_output_tokens 0`, 422, 'invalid_value', 'max_output_tokens', {
      path,
      json: { ...least(path), max_output_tokens: 0 },
    }),
    refused(`${path}, max_output_tokens 4097`, 422, 'invalid_value', 'max_output_tokens', {
      path,
      json: { ...least(path), max_output_tokens: 4097 },
    }),
    refused(`${path}, response_format text`, 422, 'invalid_value', 'response_format.type', {
      path,
      json: { ...least(path), response_format: { type: 'text' } },
    }),
    refused(`${path}, an unknown language`, 422, 'invalid_value', 'output_language', {
      path,
      json: { ...least(path), output_language: 'xx' },
    }),
    refused(`${path}, languages that differ`, 422, 'alias_conflict', 'output_language', {
      path,
      json: { ...least(path), target_language: 'de', output_language: 'en' },
    }),
    refused(`${path}, a body that is no object`, 422, 'invalid_type', null, { path, json: [] }),
    refused(
      `${path}, the key may not use the model`,
      403,
      'model_not_allowed',
      'model',
      { path, json: least(path) },
      { keys: { 'test-key': { models: ['other/*'] } } },
    ),
  ]),
  badTasks(
    'a field that the task type lacks',
    400,
    'unknown_field',
    'tasks[0].keys',
    tasks({ ...decide, keys: ['a'] }),
  ),
  badTasks('a field of a part', 400, 'unknown_field', 'messages[0].content[0].x', {
    ...batch({ context: undefined, messages: [{ role: 'user', content: [{ type: 'text', text: '', x: 1 }] }] }),
  }),
  badTasks('no tasks field', 422, 'missing_field', 'tasks', batch({ tasks: undefined })),
  badTasks('an empty list of tasks', 422, 'invalid_value', 'tasks', batch({ tasks: [] })),
  badTasks(
    '257 tasks',
    422,
    'invalid_value',
    'tasks',
    tasks(...Array.from({ length: 257 }, (_, i) => ({ ...decide, name: `t${i}` }))),
  ),
  badTasks(
    'neither name nor id',
    422,
    'missing_field',
    'tasks[1].name',
    tasks(decide, { ...extract, name: undefined }),
  ),
  badTasks(
    'a name of 65 characters',
    422,
    'invalid_value',
    'tasks[0].name',
    tasks({ ...decide, name: 'a'.repeat(65) }),
  ),
  badTasks('a name with a space', 422, 'invalid_value', 'tasks[0].name', tasks({ ...decide, name: 'a b' })),
  badTasks(
    'a repeated name',
    422,
    'duplicate_task_name',
    'tasks[2].name',
    tasks(decide, extract, { ...extract, name: 'a' }),
  ),
  badTasks(
    'a decide task without question',
    422,
    'missing_field',
    'tasks[0].question',
    tasks({ ...decide, question: undefined }),
  ),
  badTasks(
    'an extract task without instruction',
    422,
    'missing_field',
    'tasks[0].instruction',
    tasks({ ...extract, instruction: undefined }),
  ),
  badTasks('an empty question', 422, 'invalid_value', 'tasks[0].question', tasks({ ...decide, question: '' })),
  badTasks(
    'an empty instruction',
    422,
    'invalid_value',
    'tasks[0].instruction',
    tasks({ ...extract, instruction: '' }),
  ),
  badTasks(
    'an empty option',
    422,
    'invalid_value',
    'tasks[2].options[0]',
    tasks(decide, extract, { ...decide, name: 'c', options: [''] }),
  ),
  badTasks(
    'an option of 1,025 characters',
    422,
    'invalid_value',
    'tasks[0].options[0]',
    tasks({ ...decide, options: ['a'.repeat(1025)] }),
  ),
  badTasks('a repeated option', 422, 'invalid_value', 'tasks[0].options[1]', tasks({ ...decide, options: ['a', 'a'] })),
  badTasks('no options', 422, 'invalid_value', 'tasks[0].options', tasks({ ...decide, options: [] })),
  badTasks(
    'keys too long for an answer',
    422,
    'invalid_value',
    'tasks[0].fields',
    tasks({ ...extract, keys: undefined, fields: Array.from({ length: 128 }, (_, i) => `${i} `.padEnd(520, 'x')) }),
  ),
  badTasks('no keys', 422, 'invalid_value', 'tasks[0].keys', tasks({ ...extract, keys: [] })),
  badTasks(
    'options and choices differ',
    422,
    'alias_conflict',
    'tasks[0].choices',
    tasks({ ...decide, options: ['a'], choices: ['b'] }),
  ),
  badTasks(
    'keys and fields differ',
    422,
    'alias_conflict',
    'tasks[0].fields',
    tasks({ ...extract, keys: ['a'], fields: ['b'] }),
  ),
  badTasks('name and id differ', 422, 'alias_conflict', 'tasks[0].id', tasks({ ...decide, id: 'b' })),
  badTasks(
    'a keyword that is not enforced',
    422,
    'unsupported_schema',
    'tasks[0].schema.dependentRequired',
    tasks({ ...extract, schema: { type: 'object', dependentRequired: { a: ['b'] } } }),
  ),
  ...[{ type: 'array', items: { type: 'string' } }, { items: { type: 'string' } }].map((schema) =>
    badTasks('a list as the root', 422, 'unsupported_schema', 'tasks[0].schema', tasks({ ...extract, schema })),
  ),
  badTasks(
    'a key that the schema lacks',
    422,
    'invalid_value',
    'tasks[0].keys[0]',
    tasks({ ...extract, schema: { a: 'string' }, keys: ['b'] }),
  ),
  badTasks(
    'an unknown role',
    422,
    'invalid_value',
    'messages[0].role',
    batch({ context: undefined, messages: [{ role: 'tool', content: '' }] }),
  ),
  badTasks('no messages', 422, 'invalid_value', 'messages', batch({ context: undefined, messages: [] })),
  badTasks(
    'an empty list of parts',
    422,
    'invalid_value',
    'messages[0].content',
    batch({ context: undefined, messages: [{ role: 'user', content: [] }] }),
  ),
  badTasks(
    'base64 without mime_type',
    422,
    'missing_field',
    'images[0].mime_type',
    batch({ images: [{ type: 'base64', data: 'AA' }] }),
  ),
  badTasks('url without url', 422, 'missing_field', 'audio[0].url', batch({ audio: [{ type: 'url' }] })),

  ...failed(422, 'model_not_found', 'model'),
  ...failed(422, 'unsupported_modality', 'images[0]'),
  ...failed(422, 'input_too_long'),
  ...failed(500, 'model_not_loaded'),
  ...failed(500, 'engine_failed'),
  ...failed(500, 'backend_unreachable'),
  ...failed(500, 'timeout'),
  {
    name: '429 overloaded, with Retry-After in whole seconds',
    script: { tasks: { fail: { code: 'overloaded', retryAfterSeconds: 2.1 } } },
    request: { path: '/v1/tasks', json: batch() },
    expect: { status: 429, error: { code: 'overloaded', type: 'rate_limit_error' }, headers: { 'retry-after': '3' } },
  },
  {
    name: '429 overloaded, Retry-After at least 1',
    script: { tasks: { fail: { code: 'overloaded', retryAfterSeconds: 0 } } },
    request: { path: '/v1/tasks', json: batch() },
    expect: { status: 429, error: 'overloaded', headers: { 'retry-after': '1' } },
  },
  {
    name: '500 internal_error: what breaks inside is not told',
    script: { tasks: { fail: { crash: 'secret at /home/me/engine.ts:1 in "I want my money back!"' } } },
    request: { path: '/v1/tasks', json: batch() },
    expect: {
      status: 500,
      error: { code: 'internal_error', type: 'server_error', message: /^(?!.*(secret|engine|money)).*request id/ },
    },
  },
];
