import { expect } from 'vitest';
import type { Row } from '../row.ts';

const onModels = { noKey: { authorization: null } };
const description = expect.any(String);
const twoModels = [
  { id: 'assay/starter', status: 'active' },
  { id: 'org/far', status: 'available', created: 1_763_000_000 },
] as const;

/** docs/interface.md, M-3 to M-5, and the states of the slot. */
export const statusRows: readonly Row[] = [
  {
    name: 'GET / with a loaded model',
    request: { path: '/', headers: onModels.noKey },
    expect: { json: { status: 'running', active_model: 'assay/starter', description } },
  },
  {
    name: 'GET / with no model: active_model is none',
    script: { slot: { state: 'unloaded', model: null, device: 'CPU' } },
    request: { path: '/' },
    expect: { json: { status: 'running', active_model: 'none', description } },
  },
  ...['/health', '/currentmodel'].flatMap((path): Row[] => [
    {
      name: `GET ${path} with a loaded model: ok, loaded, the device, the model`,
      script: { slot: { state: 'loaded', model: 'assay/starter', device: 'NPU' } },
      request: { path, headers: onModels.noKey },
      expect: { json: { status: 'ok', state: 'loaded', device: 'NPU', active_model: 'assay/starter' } },
    },
    {
      name: `GET ${path} of an empty slot: idle, and the device that would be used`,
      script: { slot: { state: 'unloaded', model: null, device: 'GPU' } },
      request: { path },
      expect: { json: { status: 'idle', state: 'unloaded', device: 'GPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} while a model is loading`,
      script: { slot: { state: 'loading', model: 'assay/starter', device: 'CPU' } },
      request: { path },
      expect: { json: { status: 'loading', state: 'loading', device: 'CPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} while a model is unloading`,
      script: { slot: { state: 'unloading', model: 'assay/starter', device: 'CPU' } },
      request: { path },
      expect: { json: { status: 'loading', state: 'unloading', device: 'CPU', active_model: 'none' } },
    },
    {
      name: `GET ${path} of a failed slot gives the reason`,
      script: { slot: { state: 'error', model: 'assay/starter', device: 'CPU', reason: 'The weights are cut short.' } },
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
