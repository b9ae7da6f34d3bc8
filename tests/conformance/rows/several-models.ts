import type { Row } from '../row.ts';
import { path as chat, messages } from './chat-parts.ts';

const [model, other] = ['assay/starter', 'org/other'];
const memory = { usedBytes: 700e6, budgetBytes: 8e9 };
const inMemory = [
  { state: 'loaded', model, device: 'CPU', memoryBytes: 300e6 },
  { state: 'failed', model: other, device: 'CPU', reason: 'It is damaged.', memoryBytes: 400e6 },
] as const;
const models = [
  { id: model, state: 'loaded', status: 'ok', device: 'CPU', memory_bytes: 300e6 },
  { id: other, state: 'error', status: 'error', device: 'CPU', reason: 'It is damaged.', memory_bytes: 400e6 },
];

/** docs/model-api.md, M-31 and M-32. */
export const severalModelsRows: readonly Row[] = [
  ...['/load', '/v1/models/load'].flatMap((path): Row[] => [
    {
      name: `POST ${path} keeps the others or evicts them, as asked`,
      request: { path, json: { model, keep_others: true, evict: false } },
      expect: { like: { state: 'loaded' }, calls: [{ call: 'load', model, keepOthers: true, evict: false }] },
    },
    {
      name: `POST ${path} of a model that does not fit is 507`,
      script: { load: { fail: { code: 'memory_full' } } },
      request: { path, json: { model } },
      expect: { status: 507, error: { code: 'memory_full', type: 'server_error' } },
    },
    {
      name: `POST ${path} with keep_others of another type is 400`,
      request: { path, json: { model, keep_others: 'yes' } },
      expect: { status: 400, error: { code: 'invalid_type', param: 'keep_others' }, calls: [] },
    },
  ]),
  {
    name: 'POST /unload names a model',
    request: { path: '/unload', json: { model: other } },
    expect: { like: { status: 'success' }, calls: [{ call: 'unload', model: other }] },
  },
  {
    name: 'POST /unload with a text that is no id is 400',
    request: { path: '/unload', json: { model: '../x' } },
    expect: { status: 400, error: { code: 'invalid_model_id', param: 'model' }, calls: [] },
  },
  {
    name: 'POST /unload of a model that the key may not use is 403',
    app: { keyForModels: true, keys: { mine: { models: [model], scopes: ['admin'] } } },
    request: { path: '/unload', json: { model: other }, headers: { authorization: 'Bearer mine' } },
    expect: { status: 403, error: 'model_not_allowed', calls: [] },
  },
  {
    name: 'GET /health lists all models, and their memory',
    script: { inMemory, memory },
    request: { path: '/health' },
    expect: {
      json: {
        status: 'ok',
        state: 'loaded',
        device: 'CPU',
        active_model: model,
        models,
        memory_bytes: 700e6,
        memory_limit_bytes: 8e9,
      },
    },
    next: [
      { request: { path: '/health/ready' }, expect: { json: { ready: true } } },
      { request: { path: `/v2/models/${other}/ready` }, expect: { status: 503, json: { name: other, ready: false } } },
    ],
  },
  {
    name: 'a server is ready while any model answers',
    script: { inMemory: [inMemory[1], inMemory[0]], memory },
    request: { path: '/health/ready' },
    expect: { json: { ready: true } },
  },
  ...[300, 0, -1, '5m', '1h30m', null].map((keep_alive) => ({
    name: `a chat takes keep_alive ${JSON.stringify(keep_alive)}`,
    request: { path: chat, json: { messages, keep_alive } },
    expect: { status: 200 },
  })),
  ...['forever', true].map((keep_alive) => ({
    name: `a chat with keep_alive ${JSON.stringify(keep_alive)} is 400`,
    request: { path: chat, json: { messages, keep_alive } },
    expect: {
      status: 400,
      error: { code: keep_alive === true ? 'invalid_type' : 'invalid_value', param: 'keep_alive' },
      calls: [],
    } as const,
  })),
];
