import type { Row } from '../row.ts';

const modelServer = [
  ['GET', '/'],
  ['GET', '/health'],
  ['GET', '/currentmodel'],
  ['GET', '/v1/models'],
  ['GET', '/models'],
  ['POST', '/load'],
  ['POST', '/v1/models/load'],
  ['POST', '/unload'],
  ['POST', '/delete'],
  ['POST', '/v1/models/delete'],
  ['POST', '/download'],
  ['POST', '/v1/models/download'],
  ['GET', '/v1/models/assay/starter', 'GET, HEAD, DELETE'],
  ['DELETE', '/v1/models/assay/starter', 'GET, HEAD, DELETE'],
  ['POST', '/v1/chat/completions'],
  ['POST', '/v1/completions'],
  ['POST', '/v1/responses'],
] as const;

const open = new Set(['/', '/health']);

/** docs/model-api.md, M-1, M-5 and M-19, every route: methods, and the key on a server for other machines. */
export const routeRows: readonly Row[] = [
  // Base URLs are pasted with and without a slash at their end.
  ...['/v1/chat/completions/', '//v1//chat/completions'].map(
    (path): Row => ({
      name: `POST ${path} is that path without the additional slash`,
      request: { method: 'POST', path, json: { messages: [] } },
      expect: { status: 400, error: { code: 'invalid_value', param: 'messages' }, calls: [] },
    }),
  ),
  ...modelServer.flatMap(([method, path, allow = method === 'GET' ? 'GET, HEAD' : method]): Row[] => [
    {
      name: `PUT ${path} is 405 and names ${method}`,
      request: { method: 'PUT', path },
      expect: {
        status: 405,
        error: { code: 'method_not_allowed', type: 'invalid_request_error' },
        headers: { allow },
        calls: [],
      },
    },
    {
      name: `${method} ${path} with the decision service alone is 404`,
      app: { apis: ['decisions'] },
      request: { method, path },
      expect: { status: 404, error: 'route_not_found', calls: [] },
    },
    open.has(path)
      ? {
          name: `${method} ${path} needs no key, also where keys are needed`,
          app: { keyForModels: true },
          request: { method, path, headers: { authorization: null } },
          expect: { status: 200 },
        }
      : {
          name: `${method} ${path} without a key, where keys are needed, is 401`,
          app: { keyForModels: true },
          request: { method, path, headers: { authorization: null } },
          expect: {
            status: 401,
            error: { code: 'missing_api_key', type: 'authentication_error' },
            headers: { 'www-authenticate': 'Bearer' },
            calls: [],
          },
        },
    {
      name: `${method} ${path} with a foreign Host is 403`,
      app: { guard: { loopbackOnly: true, allowOrigins: [] } },
      request: { method, path, headers: { host: 'evil.example' } },
      expect: { status: 403, error: { code: 'forbidden_origin', type: 'permission_error' }, calls: [] },
    },
  ]),
  {
    name: 'a wrong key, where keys are needed, is 401',
    app: { keyForModels: true },
    request: { path: '/v1/models', headers: { authorization: 'Bearer wrong' } },
    expect: { status: 401, error: 'invalid_api_key', calls: [] },
  },
  {
    name: 'a placeholder key is ignored on a local server',
    request: { path: '/v1/models', headers: { authorization: 'Bearer placeholder' } },
    expect: { status: 200 },
  },
  {
    name: 'a key that may not use the model is 403',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'], scopes: ['admin'] } } },
    request: { path: '/load', json: { model: 'assay/starter' } },
    expect: { status: 403, error: { code: 'model_not_allowed', type: 'permission_error', param: 'model' }, calls: [] },
  },
  {
    name: '/unload with an admin key that may not use the loaded model is 403',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'], scopes: ['admin'] } } },
    request: { path: '/unload', method: 'POST' },
    expect: { status: 403, error: { code: 'model_not_allowed', param: 'model' }, calls: [] },
  },
  ...['/delete', '/download'].map(
    (path): Row => ({
      name: `${path} with an admin key that may not use the model is 403`,
      app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'], scopes: ['admin'] } } },
      request: { path, json: { model: 'assay/starter' } },
      expect: { status: 403, error: { code: 'model_not_allowed', param: 'model' }, calls: [] },
    }),
  ),
  {
    name: 'DELETE of a model that an admin key may not use is 403',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'], scopes: ['admin'] } } },
    request: { path: '/v1/models/assay/starter', method: 'DELETE' },
    expect: { status: 403, error: { code: 'model_not_allowed', param: 'model' }, calls: [] },
  },
  ...['/load', '/unload', '/download', '/delete'].map(
    (path): Row => ({
      name: `${path} with a key without the admin scope is 403`,
      app: { keyForModels: true, keys: { 'test-key': {} } },
      request: { path, json: { model: 'assay/starter' } },
      expect: { status: 403, error: { code: 'model_not_allowed', type: 'permission_error' }, calls: [] },
    }),
  ),
  ...[
    ['/v1/task', '/v1/tasks'],
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/openai/deployments/x/chat/completions', '/v1/chat/completions'],
  ].map(
    ([path = '', meant]): Row => ({
      name: `${path} is not there, and the message names ${meant}`,
      request: { path, json: {} },
      expect: {
        status: 404,
        error: {
          code: 'route_not_found',
          message: new RegExp(`^There is nothing at this path\\. Did you mean ${meant}\\?`),
        },
      },
    }),
  ),
  {
    name: 'a path that resembles none gets no suggestion',
    request: { path: '/v1/embeddings', json: {} },
    expect: {
      status: 404,
      error: {
        code: 'route_not_found',
        message: /^There is nothing at this path\. GET \/openapi\.json lists all routes\.$/,
      },
    },
  },
  {
    name: 'the model server alone has no decision paths',
    app: { apis: ['models'] },
    request: { path: '/v1/tasks', json: {} },
    expect: { status: 404, error: 'route_not_found' },
  },
];
