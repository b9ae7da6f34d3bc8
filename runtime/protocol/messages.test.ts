import { deserialize, serialize } from 'node:v8';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import type { ChatRequest, TaskBatch } from '../../lib/backend.ts';
import { FromEngine, NO_LOAD, ToEngine } from './messages.ts';

const media = {
  type: 'image' as const,
  source: { type: 'base64' as const, data: 'AA==', mimeType: 'image/png' },
  detail: 'low' as const,
  param: 'images[0]',
};
const batch: TaskBatch = {
  model: 'a/b',
  input: { messages: [{ role: 'user', name: 'Ana', parts: [{ type: 'text', text: 'lone \uD800' }, media] }] },
  media: [media],
  tasks: [
    { type: 'decide', name: '__proto__', question: 'q', options: ['a', 'b'], instruction: 'i', language: 'fr' },
    { type: 'decide', name: '10', question: 'q' },
    { type: 'extract', name: 'k', instruction: 'i', shape: { kind: 'keys', keys: ['x', '__proto__'] } },
    {
      type: 'extract',
      name: 's',
      instruction: 'i',
      shape: { kind: 'schema', schema: { type: 'object' }, keys: ['x'] },
    },
    { type: 'extract', name: 'o', instruction: 'i', shape: { kind: 'open' } },
  ],
  temperature: 0.5,
  maxOutputTokens: 16,
  language: 'no',
};
const request: ChatRequest = {
  messages: [{ role: 'system', parts: [{ type: 'text', text: '' }] }],
  maxTokens: 5,
  temperature: 1,
  topP: 0.9,
  seed: -1,
  stop: ['\n'],
  presencePenalty: -2,
  frequencyPenalty: 2,
  topLogprobs: 0,
  format: { type: 'json', shape: { kind: 'any' } },
};
const metrics = {
  queue_ms: 1,
  prompt_ms: 1,
  time_to_first_token_ms: null,
  generation_ms: 1,
  total_ms: 1,
  prompt_tokens: 1,
  cached_tokens: 0,
  completion_tokens: 1,
  prompt_tokens_per_second: null,
  tokens_per_second: null,
  device: 'CPU',
};
const usage = { promptTokens: 1, completionTokens: 1 };
const logprob = { token: '\uFFFD', logprob: Number.NEGATIVE_INFINITY, bytes: [255] };

const compileSpec = { source: '/s', target: '/t', device: 'CPU', precision: 'auto', maxPromptLen: 8 };
const choice = {
  reason: 'the fastest',
  kernels: 'AVX2',
  measured: [{ precision: 'int8', error: 0.1, ms: 3 }],
  errorLimit: 0.2,
};

describe('what one side sends is what the other reads', () => {
  it.each([
    [ToEngine, { type: 'prepare', id: '1', work: { kind: 'tasks', batch } }],
    [ToEngine, { type: 'prepare', id: '1', work: { kind: 'chat', request }, priority: 'batch' }],
    [ToEngine, { type: 'load', id: '1', spec: { model: 'a/b', dir: '/x', prefixCacheBytes: 1, threads: 2 } }],
    [ToEngine, { type: 'run', id: '1', timeoutMs: 1 }],
    [FromEngine, { type: 'content', id: '1', text: 'x', logprobs: [{ ...logprob, top: [logprob] }] }],
    [FromEngine, { type: 'answers', id: '1', answers: [{ name: '__proto__', json: '{}' }], cut: ['__proto__'] }],
    [
      FromEngine,
      { type: 'answers', id: '1', answers: [{ name: 'a', json: '{}', optionLogprobs: [-0.7, -0.7] }], cut: [] },
    ],
    [
      FromEngine,
      {
        type: 'answers',
        id: '1',
        answers: [{ name: 'a', json: '{}', fields: [{ path: '/a', probability: 1 }] }],
        cut: [],
      },
    ],
    [
      ToEngine,
      {
        type: 'prepare',
        id: '1',
        work: { kind: 'tasks', batch: { ...batch, probabilities: { orders: 2, calibrated: false } } },
      },
    ],
    [FromEngine, { type: 'finished', id: '1', reason: 'length', usage, metrics }],
    [
      FromEngine,
      { type: 'failed', id: '1', error: { code: 'overloaded', message: 'm', retryAfterSeconds: 3 }, detail: 'd' },
    ],
    [FromEngine, { type: 'failed', id: '1', error: { code: 'engine_failed', message: 'm' }, refusedPrecision: 'int8' }],
    [FromEngine, { type: 'progress', id: '1', step: 'measuring', done: 1, total: 1 }],
    [ToEngine, { type: 'compile', id: '1', spec: { ...compileSpec, refused: ['int8'] } }],
    [FromEngine, { type: 'compiled', id: '1', report: { device: 'CPU', maxPromptLen: 8, precision: 'int8', choice } }],
    [FromEngine, { type: 'heartbeat', rssBytes: 1, memory: { heapBytes: 1, bufferBytes: 0 }, ...NO_LOAD }],
  ] as [v.GenericSchema, unknown][])('%#', (schema, message) => {
    expect(v.parse(schema, deserialize(serialize(message)))).toEqual(message);
  });
});

describe('values that are not messages', () => {
  it.each([
    [FromEngine, null],
    [FromEngine, 'hello'],
    [FromEngine, { type: 'shutdown' }],
    [FromEngine, { type: 'content', id: '1', text: 'x'.repeat(5_000_000) }],
    [FromEngine, { type: 'content', id: 'x'.repeat(100), text: '' }],
    [
      FromEngine,
      { type: 'finished', id: '1', reason: 'stop', usage: { promptTokens: -1, completionTokens: 0 }, metrics },
    ],
    [FromEngine, { type: 'finished', id: '1', reason: 'stop', usage, metrics: { ...metrics, total_ms: Number.NaN } }],
    [FromEngine, { type: 'failed', id: '1', error: { code: 'made_up', message: '' } }],
    [
      FromEngine,
      { type: 'answers', id: '1', answers: Array.from({ length: 401 }, () => ({ name: 'a', json: '{}' })), cut: [] },
    ],
    [FromEngine, { type: 'answers', id: '1', answers: [{ name: 'a', json: '{}', optionLogprobs: [0.1] }], cut: [] }],
    [ToEngine, { type: 'prepare', id: '1', work: { kind: 'tasks', batch: { ...batch, tasks: [] } } }],
    [ToEngine, { type: 'load', id: '1', spec: { model: 'a/b', dir: '' } }],
  ] as [v.GenericSchema, unknown][])('%#', (schema, message) => {
    expect(v.safeParse(schema, message).success).toBe(false);
  });
});
