import { deserialize, serialize } from 'node:v8';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { FromEngine, NO_LOAD } from './messages.ts';

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

const choice = {
  reason: 'the fastest',
  kernels: 'AVX2',
  measured: [{ precision: 'int8', error: 0.1, ms: 3 }],
  errorLimit: 0.2,
};

describe('what the engine process sends is what the server reads', () => {
  it.each([
    { type: 'content', id: '1', text: 'x', logprobs: [{ ...logprob, top: [logprob] }] },
    { type: 'answers', id: '1', answers: [{ name: '__proto__', json: '{}' }], cut: ['__proto__'] },
    { type: 'answers', id: '1', answers: [{ name: 'a', json: '{}', optionLogprobs: [-0.7, -0.7] }], cut: [] },
    {
      type: 'answers',
      id: '1',
      answers: [{ name: 'a', json: '{}', fields: [{ path: '/a', probability: 1 }] }],
      cut: [],
    },
    { type: 'finished', id: '1', reason: 'length', usage, metrics },
    { type: 'failed', id: '1', error: { code: 'overloaded', message: 'm', retryAfterSeconds: 3 }, detail: 'd' },
    { type: 'failed', id: '1', error: { code: 'engine_failed', message: 'm' }, refusedPrecision: 'int8' },
    { type: 'progress', id: '1', step: 'measuring', done: 1, total: 1 },
    { type: 'compiled', id: '1', report: { device: 'CPU', maxPromptLen: 8, precision: 'int8', choice } },
    { type: 'heartbeat', rssBytes: 1, memory: { heapBytes: 1, bufferBytes: 0 }, ...NO_LOAD },
  ])('%#', (message) => {
    expect(v.parse(FromEngine, deserialize(serialize(message)))).toEqual(message);
  });
});

describe('values that are not messages', () => {
  it.each([
    null,
    'hello',
    { type: 'shutdown' },
    { type: 'content', id: '1', text: 'x'.repeat(5_000_000) },
    { type: 'content', id: 'x'.repeat(100), text: '' },
    { type: 'finished', id: '1', reason: 'stop', usage: { promptTokens: -1, completionTokens: 0 }, metrics },
    { type: 'finished', id: '1', reason: 'stop', usage, metrics: { ...metrics, total_ms: Number.NaN } },
    { type: 'failed', id: '1', error: { code: 'made_up', message: '' } },
    { type: 'answers', id: '1', answers: Array.from({ length: 401 }, () => ({ name: 'a', json: '{}' })), cut: [] },
    { type: 'answers', id: '1', answers: [{ name: 'a', json: '{}', optionLogprobs: [0.1] }], cut: [] },
  ])('%#', (message) => {
    expect(v.safeParse(FromEngine, message).success).toBe(false);
  });
});
