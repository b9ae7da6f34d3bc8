import { expect } from 'vitest';
import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row, RowRequest } from '../row.ts';

const model = 'assay/starter';
const decisions = {
  path: '/v1/decisions',
  json: { model, input: 'x', questions: [{ type: 'predicate', instructions: '?' }] },
};
const systemOne = {
  path: '/v1/systemone',
  json: { model, state: 'x', questions: { a: { type: 'noul', instructions: '?' } } },
};

/** The error body of each format. */
const said = (path: string, status: number, code: ErrorCode, type: string, param: string | null = null): object =>
  path === decisions.path
    ? { error: { message: expect.any(String), type, param, code } }
    : {
        detail:
          status === 422
            ? [{ loc: param === null ? ['body'] : ['body', param], msg: expect.any(String), type: code }]
            : { error_type: type, message: expect.any(String) },
        error: { message: expect.any(String), type, ...(param === null ? {} : { param }), code },
      };

interface Refusal {
  status: number | readonly [decisions: number, systemOne: number];
  type: string;
  param?: string;
  more?: Partial<Row>;
  request?: Partial<RowRequest>;
  headers?: Row['expect']['headers'];
}

/** The same refusal in both formats. */
function both(name: string, code: ErrorCode, { status, type, param, more, request, headers }: Refusal): Row[] {
  return [decisions, systemOne].map((base, i) => ({
    name: `${base.path}: ${code}: ${name}`,
    ...more,
    request: { ...base, ...request, ...(request?.body === undefined ? {} : { json: undefined }) },
    expect: {
      status: typeof status === 'number' ? status : status[i]!,
      json: said(base.path, typeof status === 'number' ? status : status[i]!, code, type, param),
      ...(headers ? { headers } : {}),
    },
  }));
}

/** A batch that names no model. */
const unnamed: object = expect.not.objectContaining({ model: expect.anything() });
const invalid = 'invalid_request_error';
const failed = (code: ErrorCode, retryAfterSeconds?: number) => ({
  script: { tasks: { fail: { code, message: 'Do this.', ...(retryAfterSeconds ? { retryAfterSeconds } : {}) } } },
});

/** Access, and errors outside the body: keys, quota, model, content type. */
export const questionsAccess: readonly Row[] = [
  ...both('no key', 'missing_api_key', {
    status: 401,
    type: 'authentication_error',
    request: { headers: { authorization: null } },
    headers: { 'www-authenticate': 'Bearer' },
  }),
  ...both('a key that is not known', 'invalid_api_key', {
    status: 401,
    type: 'authentication_error',
    request: { headers: { authorization: 'Bearer other' } },
  }),
  ...both('a model that the key may not use', 'model_not_allowed', {
    status: 403,
    type: 'permission_error',
    param: 'model',
    more: { app: { keys: { 'test-key': { models: ['other/model'] } } } },
  }),
  ...both('the quota is used up', 'rate_limited', {
    status: 429,
    type: 'rate_limit_error',
    more: { app: { quota: 0 } },
    headers: { 'retry-after': '7' },
  }),
  ...both('the queue is full', 'overloaded', {
    status: 429,
    type: 'rate_limit_error',
    more: failed('overloaded', 3),
    headers: { 'retry-after': '3' },
  }),
  ...both('said by the backend', 'input_too_long', {
    status: [400, 422],
    type: invalid,
    more: failed('input_too_long'),
  }),
  ...both('said by the backend', 'engine_failed', { status: 500, type: 'server_error', more: failed('engine_failed') }),
  ...both('not JSON', 'malformed_json', { status: [400, 422], type: invalid, request: { body: '{' } }),
  ...both('no body', 'malformed_json', { status: [400, 422], type: invalid, request: { body: '' } }),
  ...both('another content type', 'unsupported_media_type', {
    status: 415,
    type: invalid,
    request: { headers: { 'content-type': 'text/plain' } },
    headers: { 'accept-encoding': 'gzip, deflate' },
  }),
  ...both('an encoding that is not known', 'unsupported_media_type', {
    status: 415,
    type: invalid,
    request: { headers: { 'content-encoding': 'compress' } },
    headers: { 'accept-encoding': 'gzip, deflate' },
  }),
  ...both('GET', 'method_not_allowed', {
    status: 405,
    type: invalid,
    request: { method: 'GET', json: undefined },
    headers: { allow: 'POST' },
  }),
  ...[decisions, systemOne].map(
    (base): Row => ({
      name: `${base.path}: a key of any letter case, and the request id`,
      request: { ...base, headers: { authorization: 'bearer test-key', 'x-request-id': 'r-1' } },
      expect: {
        headers: { 'x-request-id': 'r-1', 'x-typesafe-request-id': 'r-1' },
        calls: [{ call: 'runTasks', requestId: 'r-1' }, 'admit'],
      },
    }),
  ),
  ...[decisions, systemOne].map(
    (base): Row => ({
      name: `${base.path}: a caller who leaves ends the work`,
      script: { tasks: { waitMs: 'forever' } },
      request: { ...base, leave: 'while the backend waits' },
      skip: { hosts: ['workerd', 'edge'], because: 'workerd notices a closed connection only when it writes' },
      expect: { calls: ['runTasks', 'admit', { call: 'aborted', of: 'runTasks' }] },
    }),
  ),
  ...[decisions, systemOne].map(
    (base): Row => ({
      name: `${base.path}: a body without a content type`,
      request: { ...base, headers: { 'content-type': null } },
      expect: { like: { model } },
    }),
  ),
  ...['jev-latest', 'jev-preview', null, undefined].map(
    (name): Row => ({
      name: `/v1/systemone: the model ${name} is the loaded one`,
      request: { ...systemOne, json: { ...systemOne.json, model: name } },
      expect: { like: { model }, calls: [{ call: 'runTasks', batch: unnamed }, 'admit'] },
      skip: { hosts: ['edge'], because: 'an edge sends the name of the model that its box has loaded' },
    }),
  ),
  ...[decisions, systemOne].map(
    (base): Row => ({
      name: `${base.path}: a name of --alias is the loaded model`,
      app: { aliases: ['small', 'gpt-x'] },
      request: { ...base, json: { ...base.json, model: 'gpt-x' } },
      skip: { hosts: ['edge'], because: 'an edge has its names in a variable' },
      expect: { like: { model }, calls: [{ call: 'runTasks', batch: unnamed }, 'admit'] },
    }),
  ),
  {
    name: '/v1/systemone: the loaded model by another name, which the key may not use',
    app: { keys: { 'test-key': { models: ['other/model'] } } },
    request: { ...systemOne, json: { ...systemOne.json, model: 'jev-latest' } },
    expect: { status: 403, like: { error: { code: 'model_not_allowed' } } },
  },
  {
    name: '/v1/decisions: jev-latest is no name there',
    script: { tasks: { fail: { code: 'model_not_found', message: 'Do this.' } } },
    request: { ...decisions, json: { ...decisions.json, model: 'jev-latest' } },
    expect: { status: 404, calls: [{ call: 'runTasks', batch: { model: 'jev-latest' } }] },
    skip: { hosts: ['edge'], because: 'an edge knows the models of its boxes, and asks none of them' },
  },
  {
    name: 'a bad System One body at /v1/decisions is refused in the words of System One',
    request: { path: decisions.path, json: { model, state: 'x', questions: {} } },
    expect: { status: 422, like: { detail: [{ loc: ['body', 'questions'], type: 'invalid_value' }] } },
  },
  {
    name: 'a bad Decisions body at /v1/systemone is refused in the words of Decisions',
    request: { path: systemOne.path, json: { model, input: 'x', questions: [] } },
    expect: { status: 400, json: said(decisions.path, 400, 'invalid_value', invalid, 'questions') },
  },
  {
    name: 'a body with state and input is of the path that it came to',
    request: { path: systemOne.path, json: { ...systemOne.json, input: 'x' } },
    expect: { like: { answers: { a: { type: 'noul' } } } },
  },
];
