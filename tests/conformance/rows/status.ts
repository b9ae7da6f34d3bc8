import { expect } from 'vitest';
import type { Row } from '../row.ts';

const onModels = { noKey: { authorization: null } };
const description = expect.any(String);

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
      name: `GET ${path}: every model with its status`,
      script: {
        models: [
          { id: 'assay/starter', status: 'active' },
          { id: 'org/other-1.5B', status: 'compiled' },
          { id: 'org/far', status: 'available' },
        ],
      },
      request: { path, headers: onModels.noKey },
      expect: {
        json: {
          object: 'list',
          data: [
            { id: 'assay/starter', object: 'model', status: 'active' },
            { id: 'org/other-1.5B', object: 'model', status: 'compiled' },
            { id: 'org/far', object: 'model', status: 'available' },
          ],
        },
        calls: ['listModels'],
      },
    },
    {
      name: `GET ${path}: no models`,
      script: { models: [] },
      request: { path },
      expect: { json: { object: 'list', data: [] } },
    },
    {
      name: `GET ${path}: a backend that fails with something else says nothing of it`,
      script: { models: { crash: '/secret/path' } },
      request: { path },
      expect: { status: 500, error: { code: 'internal_error', type: 'server_error', message: /^(?!.*secret)/ } },
    },
  ]),
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
