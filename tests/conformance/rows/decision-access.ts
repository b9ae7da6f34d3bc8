import type { Row } from '../row.ts';

const body = { model: 'assay/starter', context: '', tasks: [{ type: 'decide', name: 'a', question: 'Angry?' }] };
const paths = ['/v1/tasks', '/v1/decide-extract', '/decide', '/extract'];
const request = { path: '/v1/tasks', json: body };
const authorized = (authorization: string | null) => ({ ...request, headers: { authorization } });
const unauthorized = (code: 'missing_api_key' | 'invalid_api_key') =>
  ({
    status: 401,
    error: { code, type: 'authentication_error' },
    headers: { 'www-authenticate': 'Bearer' },
    calls: [],
  }) as const;
const mayUse = (name: string, models: string[], allowed: boolean): Row => ({
  name: `scope: ${name}`,
  app: { keys: { 'test-key': { models } } },
  request,
  expect: allowed
    ? {}
    : { status: 403, error: { code: 'model_not_allowed', type: 'permission_error', param: 'model' }, calls: [] },
});

/** docs/interface.md, D-30 and D-31. */
export const decisionAccess: readonly Row[] = [
  { name: '401: no header', request: authorized(null), expect: unauthorized('missing_api_key') },
  { name: '401: an empty header', request: authorized(''), expect: unauthorized('missing_api_key') },
  { name: '401: a scheme without key', request: authorized('Bearer'), expect: unauthorized('missing_api_key') },
  { name: '401: another scheme', request: authorized('Basic dGVzdC1rZXk='), expect: unauthorized('missing_api_key') },
  { name: '401: a key without scheme', request: authorized('test-key'), expect: unauthorized('missing_api_key') },
  { name: '401: an unknown key', request: authorized('Bearer test-keys'), expect: unauthorized('invalid_api_key') },
  {
    name: '401: a key in another case',
    request: authorized('Bearer TEST-KEY'),
    expect: unauthorized('invalid_api_key'),
  },
  { name: '401: a key and more', request: authorized('Bearer test-key x'), expect: unauthorized('invalid_api_key') },
  {
    name: '401: the hash of a key',
    request: authorized('Bearer 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef'),
    expect: unauthorized('invalid_api_key'),
  },
  { name: 'the letter case of the scheme does not matter', request: authorized('bEARER test-key'), expect: {} },
  { name: 'several spaces behind the scheme', request: authorized('Bearer   test-key'), expect: {} },
  ...paths.map((path) => ({
    name: `401 on ${path}, before anything of the request is read`,
    request: { path, body: '{', headers: { authorization: 'Bearer nobody', 'content-type': 'text/plain' } },
    expect: unauthorized('invalid_api_key'),
  })),
  {
    name: 'the decision service needs a key also where the model server needs none',
    app: { keys: {} },
    request,
    expect: unauthorized('invalid_api_key'),
  },
  mayUse('*', ['*'], true),
  mayUse('the model itself', ['assay/starter'], true),
  mayUse('one of several', ['x/y', 'assay/*'], true),
  mayUse('a star inside', ['a*y/st*r'], true),
  mayUse('none', [], false),
  mayUse('another namespace', ['other/*'], false),
  mayUse('a beginning is not the whole', ['assay/start'], false),
  mayUse('an end is not the whole', ['starter'], false),
  mayUse('no other wildcard', ['assay/st.rter', 'assay/?tarter'], false),
  ...paths.flatMap((path) =>
    ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].map((method) => ({
      name: `405: ${method} ${path}`,
      request: { path, method },
      expect: {
        status: 405,
        error: { code: 'method_not_allowed' as const, type: 'invalid_request_error' as const },
        headers: { allow: 'POST' },
        calls: [],
      },
    })),
  ),
  {
    name: 'an aborted request reaches the backend',
    script: { tasks: { waitMs: 'forever' } },
    request: { ...request, leave: 'while the backend waits' },
    expect: { calls: ['runTasks', 'admit', 'aborted'] },
    skip: { hosts: ['workerd', 'edge'], because: 'workerd notices a closed connection only when it writes' },
  },
];
