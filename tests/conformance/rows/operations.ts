import type { Row } from '../row.ts';

const model = 'assay/starter';
const withBody = ['/load', '/v1/models/load', '/delete', '/v1/models/delete', '/download', '/v1/models/download'];

const badIds = [
  '',
  'starter',
  'assay/',
  '/starter',
  'a/b/c',
  '../etc',
  'assay/..',
  'assay/a..b',
  '/etc/passwd',
  'C:\\x',
  'assay\\starter',
  'assay/st\0rter',
  'assay/.hidden',
  '-x/y',
  'assay/stärter',
  'assay/starter ',
  'assay/starter\n',
  `${'n'.repeat(97)}/x`,
  `x/${'n'.repeat(97)}`,
];

/** docs/model-api.md, M-6 to M-12. */
export const operationRows: readonly Row[] = [
  ...['/load', '/v1/models/load'].flatMap((path): Row[] => [
    {
      name: `POST ${path} loads`,
      request: { path, json: { model } },
      expect: {
        json: {
          status: 'success',
          model,
          state: 'loaded',
          device: 'CPU',
          load_ms: 12,
          compiled: false,
          max_prompt_len: 4096,
        },
        calls: [{ call: 'load', model }],
      },
    },
    {
      name: `POST ${path} takes max_prompt_len`,
      request: { path, json: { model, max_prompt_len: 16 } },
      expect: { like: { max_prompt_len: 16 }, calls: [{ call: 'load', model, maxPromptLen: 16 }] },
    },
    ...['15', '0', '-1', '1048577', '1.5', '"64"', 'null', '1e999'].map((number, i) => ({
      name: `POST ${path}: max_prompt_len ${number} is 400`,
      request: { path, body: `{"model":"${model}","max_prompt_len":${number}}` },
      expect: {
        status: 400,
        error: { code: i < 4 ? 'invalid_value' : 'invalid_type', param: 'max_prompt_len' },
        calls: [],
      } as const,
    })),
    {
      name: `POST ${path} of what is not on this machine is 404 and says how to fetch it`,
      request: { path, json: { model: 'org/absent' } },
      expect: {
        status: 404,
        error: { code: 'model_not_found', type: 'not_found_error', message: /assay pull org\/absent/ },
      },
    },
    {
      name: `POST ${path} while another operation runs is 409`,
      script: { load: { fail: { code: 'operation_in_progress' } } },
      request: { path, json: { model } },
      expect: { status: 409, error: { code: 'operation_in_progress', type: 'conflict_error' } },
    },
    {
      name: `POST ${path} that fails in the engine is 500`,
      script: { load: { fail: { code: 'engine_failed' } } },
      request: { path, json: { model } },
      expect: { status: 500, error: { code: 'engine_failed', type: 'server_error' } },
    },
  ]),
  {
    name: 'a model: load, health, unload, health, unload again',
    script: { active: { state: 'unloaded', model: null, device: 'CPU' }, models: [{ id: model, status: 'compiled' }] },
    request: { path: '/load', json: { model } },
    expect: { like: { state: 'loaded' } },
    next: [
      { request: { path: '/health' }, expect: { like: { state: 'loaded', active_model: model } } },
      {
        request: { path: '/unload', method: 'POST' },
        expect: { json: { status: 'success', model, state: 'unloaded' } },
      },
      { request: { path: '/health' }, expect: { like: { state: 'unloaded', active_model: 'none' } } },
      {
        request: { path: '/unload', method: 'POST' },
        expect: { json: { status: 'success', model: null, state: 'unloaded' } },
      },
    ],
  },
  {
    name: 'POST /unload takes an empty JSON body too',
    request: { path: '/unload', json: {} },
    expect: { like: { state: 'unloaded' }, calls: ['unload'] },
  },
  {
    name: 'POST /unload with a body that is no JSON is 415',
    request: { path: '/unload', body: 'x=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    expect: { status: 415, error: 'unsupported_media_type', calls: [] },
  },
  {
    name: 'POST /unload without a byte of a body has no content type to check',
    request: { path: '/unload', body: '', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    expect: { like: { state: 'unloaded' }, calls: ['unload'] },
  },
  {
    name: 'POST /unload with a body that is broken JSON is 400',
    request: { path: '/unload', body: '{oops', headers: { 'content-type': 'application/json' } },
    expect: { status: 400, error: 'malformed_json', calls: [] },
  },
  {
    name: 'DELETE with a body that is no JSON is 415, and deletes nothing',
    request: { method: 'DELETE', path: `/v1/models/${model}`, body: 'x', headers: { 'content-type': 'text/plain' } },
    expect: { status: 415, error: 'unsupported_media_type', calls: [] },
  },
  {
    name: 'DELETE of a model whose weights are part of the program says that they are still here',
    script: { remove: { weightsLeft: true } },
    request: { method: 'DELETE', path: `/v1/models/${model}` },
    expect: { like: { state: 'downloaded' }, calls: [{ call: 'remove', model, compiledOnly: false }] },
  },
  ...['/delete', '/v1/models/delete'].flatMap((path): Row[] => [
    {
      name: `POST ${path} removes everything by default`,
      script: {
        remove: {
          removed: [
            { kind: 'compiled', bytes: 10 },
            { kind: 'weights', bytes: 20 },
            { kind: 'locks', bytes: 0 },
          ],
        },
      },
      request: { path, json: { model } },
      expect: {
        json: {
          status: 'success',
          model,
          state: 'deleted',
          removed: [
            { kind: 'compiled', bytes: 10 },
            { kind: 'weights', bytes: 20 },
            { kind: 'locks', bytes: 0 },
          ],
        },
        calls: [{ call: 'remove', model, compiledOnly: false }],
      },
    },
    {
      name: `POST ${path} with compiled_only: true keeps the weights`,
      request: { path, json: { model, compiled_only: true } },
      expect: { like: { state: 'downloaded' }, calls: [{ call: 'remove', model, compiledOnly: true }] },
    },
    {
      name: `POST ${path} with compiled_only: true where only weights are removes nothing`,
      script: { remove: { removed: [] } },
      request: { path, json: { model, compiled_only: true } },
      expect: { json: { status: 'success', model, state: 'downloaded', removed: [] } },
    },
    {
      name: `POST ${path} of the active model is 409`,
      script: { remove: { fail: { code: 'model_in_use' } } },
      request: { path, json: { model } },
      expect: { status: 409, error: { code: 'model_in_use', type: 'conflict_error' } },
    },
    {
      name: `POST ${path} of what is not here is 404`,
      script: { remove: { fail: { code: 'model_not_found' } } },
      request: { path, json: { model } },
      expect: { status: 404, error: { code: 'model_not_found', type: 'not_found_error' } },
    },
    {
      name: `POST ${path}: a misspelt compiled_only deletes nothing`,
      request: { path, json: { model, compile_only: true } },
      expect: { status: 400, error: { code: 'unknown_field', param: 'compile_only' }, calls: [] },
    },
    {
      name: `POST ${path}: compiled_only that is no boolean is 400`,
      request: { path, json: { model, compiled_only: 'true' } },
      expect: { status: 400, error: { code: 'invalid_type', param: 'compiled_only' }, calls: [] },
    },
  ]),
  ...['assay/starter', 'assay%2Fstarter', 'assay%2fstarter', '%61ssay/starter'].map((path) => ({
    name: `DELETE /v1/models/${path} removes everything`,
    request: { method: 'DELETE', path: `/v1/models/${path}` },
    expect: {
      like: { status: 'success', model, state: 'deleted' },
      calls: [{ call: 'remove', model, compiledOnly: false }],
    } as const,
  })),
  ...[
    'starter',
    'a/b/c',
    '..%2fx',
    'x%2f..',
    '..%5cx',
    'assay%2F..%2F..%2Fetc',
    'assay/st%00rter',
    '%2Fetc%2Fpasswd',
    '%252e%252e/x',
    'assay/%E0%A4%A',
    'assay/%ff',
    `x/${'n'.repeat(97)}`,
    'n'.repeat(5000),
  ].map((path) => ({
    name: `DELETE /v1/models/${path.slice(0, 40)} is no id: 400`,
    request: { method: 'DELETE', path: `/v1/models/${path}` },
    expect: { status: 400, error: { code: 'invalid_model_id', param: 'model' }, calls: [] } as const,
  })),
  ...withBody.flatMap((path): Row[] => [
    ...badIds.map((id) => ({
      name: `POST ${path} with the id ${JSON.stringify(id.slice(0, 30))} is 400`,
      request: { path, json: { model: id } },
      expect: { status: 400, error: { code: 'invalid_model_id', param: 'model' }, calls: [] } as const,
    })),
    {
      name: `POST ${path} without a model is 400`,
      request: { path, json: {} },
      expect: { status: 400, error: { code: 'missing_field', param: 'model' }, calls: [] },
    },
    {
      name: `POST ${path} with a body that is no object is 400`,
      request: { path, json: [] },
      expect: { status: 400, error: 'invalid_type', calls: [] },
    },
    {
      name: `POST ${path} with an unknown field is 400`,
      request: { path, body: `{"model":"${model}","__proto__":1}` },
      expect: { status: 400, error: { code: 'unknown_field', param: '__proto__' }, calls: [] },
    },
    {
      name: `POST ${path} without a body is 415`,
      request: { path, method: 'POST' },
      expect: { status: 415, error: { code: 'unsupported_media_type', type: 'invalid_request_error' }, calls: [] },
    },
    {
      name: `POST ${path} with a form is 415`,
      request: { path, body: 'model=a/b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      expect: { status: 415, error: 'unsupported_media_type', calls: [] },
    },
    {
      name: `POST ${path} with broken JSON is 400`,
      request: { path, body: '{"model":' },
      expect: { status: 400, error: 'malformed_json', calls: [] },
    },
  ]),
];
