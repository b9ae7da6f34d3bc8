import { expect } from 'vitest';
import type { Row } from '../row.ts';

const onModels = { noKey: { authorization: null } };
const description = expect.any(String);
const twoModels = [
  { id: 'assay/starter', status: 'active' },
  { id: 'org/far', status: 'available', created: 1_763_000_000 },
] as const;

const SILENT = { state: 'loaded', model: 'assay/starter', device: 'CPU', silentMs: 7000, unresponsive: true } as const;

const capabilities = {
  decide: 'options',
  extract: false,
  chat: false,
  abstains: true,
  max_tokens: 512,
  max_options: 24,
} as const;
const contract = { name: 'verdict', version: null, temperature: 'calibrator.json: per_k, temperature' };

/** docs/model-api.md, M-3 to M-5, M-28 and M-29, and the states of a model. */
export const statusRows: readonly Row[] = [
  {
    name: 'GET / with a loaded model',
    request: { path: '/', headers: onModels.noKey },
    expect: { json: { status: 'running', active_model: 'assay/starter', description } },
  },
  {
    name: 'GET / with no model: active_model is none',
    script: { active: { state: 'unloaded', model: null, device: 'CPU' } },
    request: { path: '/' },
    expect: { json: { status: 'running', active_model: 'none', description } },
  },
  ...['/health', '/currentmodel'].flatMap((path): Row[] => [
    {
      name: `GET ${path} with a loaded model: ok, loaded, the device, the model, its longest prompt`,
      script: { active: { state: 'loaded', model: 'assay/starter', device: 'NPU', maxPromptLen: 8192 } },
      request: { path, headers: onModels.noKey },
      expect: {
        json: { status: 'ok', state: 'loaded', device: 'NPU', active_model: 'assay/starter', max_prompt_len: 8192 },
      },
    },
    {
      name: `GET ${path} without a model: idle, and the device that would be used`,
      script: { active: { state: 'unloaded', model: null, device: 'GPU' } },
      request: { path },
      expect: { json: { status: 'idle', state: 'unloaded', device: 'GPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} while a model is loading`,
      script: { active: { state: 'loading', model: 'assay/starter', device: 'CPU' } },
      request: { path },
      expect: { json: { status: 'loading', state: 'loading', device: 'CPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} while a model is unloading`,
      script: { active: { state: 'unloading', model: 'assay/starter', device: 'CPU' } },
      request: { path },
      expect: { json: { status: 'loading', state: 'unloading', device: 'CPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} of a failed model gives the reason`,
      script: {
        active: { state: 'failed', model: 'assay/starter', device: 'CPU', reason: 'The weights are cut short.' },
      },
      request: { path },
      expect: {
        json: {
          status: 'error',
          state: 'error',
          device: 'CPU',
          active_model: 'none',
          reason: 'The weights are cut short.',
        },
      },
    },
  ]),
  ...['/health/live', '/v2/health/live'].map(
    (path): Row => ({
      name: `GET ${path} without a model: alive`,
      script: { active: { state: 'unloaded', model: null, device: 'CPU' } },
      request: { path, headers: onModels.noKey },
      expect: { json: { live: true } },
    }),
  ),
  ...['/health/ready', '/v2/health/ready'].flatMap((path): Row[] => [
    {
      name: `GET ${path} with a loaded model, without a key`,
      app: { keyForModels: true },
      request: { path, headers: onModels.noKey },
      expect: { json: { ready: true } },
    },
    ...(
      [
        ['unloaded', 'unloaded'],
        ['loading', 'loading'],
        ['unloading', 'unloading'],
        ['restarting', 'error'],
        ['failed', 'error'],
      ] as const
    ).map(
      ([state, shown]): Row => ({
        name: `GET ${path} in the state ${state}: 503, with the reason`,
        script: { active: { state, model: state === 'unloaded' ? null : 'assay/starter', device: 'CPU' } },
        request: { path },
        expect: { status: 503, json: { ready: false, reason: expect.stringContaining(shown) } },
      }),
    ),
    {
      name: `GET ${path} of an engine that says nothing: 503`,
      script: { active: SILENT },
      request: { path },
      expect: { status: 503, json: { ready: false, reason: 'The engine process has not responded for 7 s.' } },
    },
  ]),
  {
    name: 'GET /health of an engine that says nothing: error, although the model is loaded',
    script: { active: SILENT },
    request: { path: '/health' },
    expect: {
      json: {
        status: 'error',
        state: 'loaded',
        device: 'CPU',
        active_model: 'assay/starter',
        heartbeat_age_ms: 7000,
        reason: 'The engine process has not responded for 7 s.',
      },
    },
  },
  ...[null, 'it shares a sequence'].map(
    (dependence): Row => ({
      name: `GET /health of a model whose answers ${dependence === null ? 'do not depend' : 'may depend'} on company (M-4)`,
      script: { active: { state: 'loaded', model: 'assay/starter', device: 'CPU', dependence } },
      request: { path: '/health' },
      expect: {
        json: {
          status: 'ok',
          state: 'loaded',
          device: 'CPU',
          active_model: 'assay/starter',
          deterministic: dependence === null,
          ...(dependence === null ? {} : { deterministic_reason: dependence }),
        },
      },
    }),
  ),
  {
    name: 'GET /v2: the server, in the format of the Open Inference Protocol',
    request: { path: '/v2', headers: onModels.noKey },
    expect: { json: { name: 'assay', version: expect.any(String), extensions: [] } },
  },
  ...['assay/starter', 'assay%2Fstarter'].flatMap((id): Row[] => [
    {
      name: `GET /v2/models/${id}: the loaded model`,
      request: { path: `/v2/models/${id}`, headers: onModels.noKey },
      expect: { json: { name: 'assay/starter', platform: 'onnxruntime', inputs: [], outputs: [] } },
    },
    {
      name: `GET /v2/models/${id}/ready: true`,
      request: { path: `/v2/models/${id}/ready`, headers: onModels.noKey },
      expect: { json: { name: 'assay/starter', ready: true } },
    },
  ]),
  {
    name: 'GET /v2/models/{model_id}/ready while the model is loading: 503',
    script: { active: { state: 'loading', model: 'assay/starter', device: 'CPU' } },
    request: { path: '/v2/models/assay/starter/ready' },
    expect: { status: 503, json: { name: 'assay/starter', ready: false } },
  },
  ...['/v2/models/org/other', '/v2/models/org/other/ready'].map(
    (path): Row => ({
      name: `GET ${path}: only the active model has an entry`,
      request: { path },
      expect: { status: 404, error: { code: 'model_not_found', param: 'model' } },
    }),
  ),
  ...['/v1/models', '/models'].flatMap((path): Row[] => [
    {
      name: `GET ${path}: every model with its status, and the names of the loaded one`,
      app: { aliases: ['small'] },
      script: {
        models: [
          { id: 'assay/starter', status: 'active', created: 1_764_000_000 },
          { id: 'org/other-1.5B', status: 'compiled', created: 1_763_000_000 },
          { id: 'org/far', status: 'available' },
        ],
      },
      request: { path, headers: onModels.noKey },
      expect: {
        json: {
          object: 'list',
          data: [
            { id: 'assay/starter', object: 'model', created: 1_764_000_000, owned_by: 'assay', status: 'active' },
            { id: 'org/other-1.5B', object: 'model', created: 1_763_000_000, owned_by: 'org', status: 'compiled' },
            { id: 'org/far', object: 'model', created: 0, owned_by: 'org', status: 'available' },
          ],
          models: [
            { name: 'assay/starter', description: expect.stringMatching(/active/), release_date: '2025-11-24' },
            { name: 'org/other-1.5B', description: expect.stringMatching(/compiled/), release_date: '2025-11-13' },
            { name: 'org/far', description: expect.stringMatching(/available/), release_date: '1970-01-01' },
            ...['jev-latest', 'jev-preview', 'small'].map((name) => ({
              name,
              description: expect.stringMatching(/assay\/starter/),
              release_date: '2025-11-24',
            })),
          ],
        },
        calls: ['listModels'],
      },
    },
    {
      name: `GET ${path}: what the loaded model can do, and how it is asked`,
      script: { models: [{ id: 'org/laya', status: 'active', created: 1_764_000_000, capabilities, contract }] },
      request: { path, headers: onModels.noKey },
      expect: { like: { data: [{ id: 'org/laya', capabilities, contract }] } },
    },
    {
      name: `GET ${path}: no models`,
      script: { models: [] },
      request: { path },
      expect: { json: { object: 'list', data: [], models: [] } },
    },
    {
      name: `GET ${path}: a backend that fails with something else says nothing of it`,
      script: { models: { crash: '/secret/path' } },
      request: { path },
      expect: { status: 500, error: { code: 'internal_error', type: 'server_error', message: /^(?!.*secret)/ } },
    },
  ]),
  ...['/v1/models/org/far', '/v1/models/org%2Ffar'].map(
    (path): Row => ({
      name: `GET ${path}: one model of the list`,
      script: { models: [...twoModels] },
      request: { path, headers: onModels.noKey },
      expect: {
        json: { id: 'org/far', object: 'model', created: 1_763_000_000, owned_by: 'org', status: 'available' },
        calls: ['listModels'],
      },
    }),
  ),
  {
    name: 'GET /v1/models/{id}: another name of the loaded model',
    app: { aliases: ['small'] },
    script: { models: [...twoModels] },
    request: { path: '/v1/models/small' },
    expect: { like: { id: 'assay/starter', status: 'active' } },
  },
  {
    name: 'GET /v1/models/{id}: an unknown id, with the names that there are',
    script: { models: [...twoModels] },
    request: { path: '/v1/models/org/fax' },
    expect: {
      status: 404,
      error: {
        code: 'model_not_found',
        type: 'not_found_error',
        message: /Did you mean org\/far\? Loaded: assay\/starter\./,
      },
    },
  },
  {
    name: 'GET /v1/models/{id}: what is no id is unknown too',
    request: { path: '/v1/models/gpt-4o' },
    expect: { status: 404, error: 'model_not_found' },
  },
  {
    name: 'GET /v1/models/{id} of a model that the key has no right to',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'] } } },
    request: { path: '/v1/models/assay/starter' },
    expect: { status: 403, error: 'model_not_allowed', calls: [] },
  },
  ...['/v1/models', '/models'].map(
    (path): Row => ({
      name: `GET ${path} lists only the models that the key may use`,
      app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'] } } },
      script: {
        models: [
          { id: 'assay/starter', status: 'active' },
          { id: 'org/laya', status: 'compiled' },
        ],
      },
      request: { path },
      expect: { like: { data: [{ id: 'org/laya' }], models: [{ name: 'org/laya' }] } },
    }),
  ),
  {
    name: 'without a ModelHost GET /v1/models/{id} is there, DELETE is not',
    app: { noHost: true },
    request: { path: '/v1/models/assay/starter' },
    expect: { like: { id: 'assay/starter' } },
    next: [
      {
        request: { method: 'DELETE', path: '/v1/models/assay/starter' },
        expect: { status: 405, error: 'method_not_allowed', headers: { allow: 'GET, HEAD' } },
      },
    ],
  },
  {
    name: 'HEAD / is GET without the body',
    request: { path: '/', method: 'HEAD' },
    expect: { headers: { 'content-type': /^application\/json/ } },
  },
  {
    name: 'without a ModelHost there is no status',
    app: { noHost: true },
    request: { path: '/health' },
    expect: { status: 404, error: 'route_not_found' },
  },
];
