import { expect } from 'vitest';
import type { Row } from '../row.ts';

const model = 'org/new-model';
const events = { accept: 'text/event-stream' };
const done = { type: 'done', report: { bytes: 300, compiled: true } } as const;
const result = { status: 'success', model, state: 'compiled', bytes: 300, compiled: true, max_prompt_len: 4096 };

/** docs/model-api.md, M-10. */
export const downloadRows: readonly Row[] = ['/download', '/v1/models/download'].flatMap((path): Row[] => [
  {
    name: `POST ${path} answers when all is done`,
    script: {
      download: [
        { type: 'progress', stage: 'downloading', bytes: 100, total: 300, file: 'model.onnx' },
        { waitMs: 20 },
        { type: 'progress', stage: 'compiling', bytes: 0, total: null, step: 'quantise' },
        done,
      ],
    },
    request: { path, json: { model } },
    expect: { json: result, calls: [{ call: 'download', model, allowDownload: true }] },
  },
  {
    name: `POST ${path} as an event stream tells of each stage and ends with the result`,
    script: {
      download: [
        { type: 'progress', stage: 'downloading', bytes: 100, total: 300, file: 'model.onnx' },
        { type: 'progress', stage: 'verifying', bytes: 300, total: 300 },
        { type: 'progress', stage: 'compiling', bytes: 0, total: null, step: 'quantise' },
        done,
      ],
    },
    request: { path, json: { model }, headers: events },
    expect: {
      headers: { 'content-type': /^text\/event-stream/ },
      events: [
        { status: 'downloading', model, bytes: 100, total: 300, file: 'model.onnx' },
        { status: 'verifying', model, bytes: 300, total: 300 },
        { status: 'compiling', model, bytes: 0, total: null, step: 'quantise' },
        result,
      ],
    },
  },
  {
    name: `POST ${path} takes allow_download and max_prompt_len`,
    request: { path, json: { model, allow_download: false, max_prompt_len: 512 } },
    expect: {
      like: { max_prompt_len: 512 },
      calls: [{ call: 'download', model, allowDownload: false, maxPromptLen: 512 }],
    },
  },
  {
    name: `POST ${path} without the hub of what is not on disk is 409`,
    script: { download: [{ fail: { code: 'not_downloaded' } }] },
    request: { path, json: { model, allow_download: false } },
    expect: { status: 409, error: { code: 'not_downloaded', type: 'conflict_error' } },
  },
  {
    name: `POST ${path} of what the hub does not have is 404, also for an event stream`,
    script: { download: [{ fail: { code: 'model_not_found' } }] },
    request: { path, json: { model }, headers: events },
    expect: { status: 404, error: { code: 'model_not_found', type: 'not_found_error' } },
  },
  {
    name: `POST ${path} with a hub out of reach is 502`,
    script: { download: [{ fail: { code: 'hub_unreachable' } }] },
    request: { path, json: { model } },
    expect: { status: 502, error: { code: 'hub_unreachable', type: 'server_error' } },
  },
  {
    name: `POST ${path} on a full disk is 507, also after some progress`,
    script: {
      download: [{ type: 'progress', stage: 'downloading', bytes: 1, total: 2 }, { fail: { code: 'disk_full' } }],
    },
    request: { path, json: { model } },
    expect: { status: 507, error: { code: 'disk_full', type: 'server_error' } },
  },
  {
    name: `POST ${path} as an event stream that fails ends with one error event`,
    script: {
      download: [{ type: 'progress', stage: 'downloading', bytes: 1, total: 2 }, { fail: { code: 'disk_full' } }],
    },
    request: { path, json: { model }, headers: events },
    expect: {
      events: [
        { status: 'downloading', model, bytes: 1, total: 2 },
        { error: { type: 'server_error', code: 'disk_full', message: expect.any(String) } },
      ],
    },
  },
  {
    name: `POST ${path}: comments keep a silent event stream open`,
    app: { heartbeatMs: 10 },
    script: {
      download: [{ type: 'progress', stage: 'downloading', bytes: 1, total: 2 }, { waitMs: 150 }, done],
    },
    request: { path, json: { model }, headers: events },
    expect: { events: [{ status: 'downloading', model, bytes: 1, total: 2 }, result], comments: true },
  },
]);
