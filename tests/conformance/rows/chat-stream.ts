import { expect } from 'vitest';
import type { Row } from '../row.ts';
import { finish, head, messages, metrics, path, says, start, thinks, usage } from './chat-parts.ts';

const json = { messages, stream: true };

const chunk = (delta: object, rest: object = {}) => ({
  ...head,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...rest }],
});
const role = chunk({ role: 'assistant' });
const last = { ...chunk({}, { finish_reason: 'stop' }), usage, metrics };
const token = { token: 'Hel', logprob: -0.5, bytes: [72, 101, 108] };

/** workerd reports a client's close only at the next write. */
const nothingWritten = { hosts: ['workerd', 'edge'], because: 'nothing is written while the caller waits' } as const;

/** docs/model-api.md, M-17. */
export const chatStreamRows: readonly Row[] = [
  {
    name: 'the order: role, reasoning, content, one final chunk with usage and metrics, [DONE]',
    script: { chat: [start, thinks('Hm'), thinks('…'), says('Hel'), says('lo'), finish] },
    request: { path, json },
    expect: {
      headers: { 'content-type': /^text\/event-stream/, 'cache-control': 'no-store' },
      events: [
        role,
        chunk({ reasoning_content: 'Hm' }),
        chunk({ reasoning_content: '…' }),
        chunk({ content: 'Hel' }),
        chunk({ content: 'lo' }),
        last,
        '[DONE]',
      ],
    },
  },
  {
    name: 'an answer without text',
    script: { chat: [start, finish] },
    request: { path, json },
    expect: { events: [role, last, '[DONE]'] },
  },
  {
    name: 'line breaks and odd characters stay inside one event',
    script: { chat: [start, says('a\n\ndata: x\r\n\u2028'), says('😀'), finish] },
    request: { path, json },
    expect: { events: [role, chunk({ content: 'a\n\ndata: x\r\n\u2028' }), chunk({ content: '😀' }), last, '[DONE]'] },
  },
  {
    name: 'stream_options.include_usage: false is the default',
    script: { chat: [start, says('x'), finish] },
    request: { path, json: { ...json, stream_options: { include_usage: false } } },
    expect: { events: [role, chunk({ content: 'x' }), last, '[DONE]'] },
  },
  {
    name: 'stream_options.include_usage: true: one more chunk, with the usage and without choices',
    script: { chat: [start, says('x'), finish] },
    request: { path, json: { ...json, stream_options: { include_usage: true } } },
    expect: {
      events: [
        { ...role, usage: null },
        { ...chunk({ content: 'x' }), usage: null },
        { ...chunk({}, { finish_reason: 'stop' }), usage: null },
        { ...head, object: 'chat.completion.chunk', choices: [], usage, metrics },
        '[DONE]',
      ],
    },
  },
  {
    name: 'logprobs stand beside their piece',
    script: {
      chat: [start, { event: { type: 'content', text: 'Hel', logprobs: [{ ...token, top: [token] }] } }, finish],
    },
    request: { path, json: { ...json, logprobs: true, top_logprobs: 1 } },
    expect: {
      events: [
        role,
        chunk({ content: 'Hel' }, { logprobs: { content: [{ ...token, top_logprobs: [token] }], refusal: null } }),
        last,
        '[DONE]',
      ],
    },
  },
  {
    name: 'comments keep a silent stream open',
    app: { heartbeatMs: 10 },
    script: { chat: [start, { waitMs: 150 }, says('x'), finish] },
    request: { path, json },
    expect: { comments: true, events: [role, chunk({ content: 'x' }), last, '[DONE]'] },
  },
  {
    name: 'an error after the start is one event, then the end',
    script: { chat: [start, says('Hel'), { fail: { code: 'engine_failed' } }] },
    request: { path, json },
    expect: {
      events: [
        role,
        chunk({ content: 'Hel' }),
        { error: { type: 'server_error', code: 'engine_failed', message: expect.any(String) } },
      ],
    },
  },
  {
    name: 'an error of another kind says nothing of itself',
    script: { chat: [start, { fail: { crash: '/secret' } }] },
    request: { path, json },
    expect: {
      events: [
        role,
        { error: { type: 'server_error', code: 'internal_error', message: expect.stringMatching(/^(?!.*secret)/) } },
      ],
    },
  },
  {
    name: 'a backend that ends without a finish is an error event',
    script: { chat: [start, says('Hel')] },
    request: { path, json },
    expect: {
      events: [
        role,
        chunk({ content: 'Hel' }),
        { error: { type: 'server_error', code: 'engine_failed', message: expect.any(String) } },
      ],
    },
  },
  {
    name: 'a caller who leaves a stream frees the backend',
    app: { heartbeatMs: 50 },
    script: { chat: [start, says('x'), { waitMs: 'forever' }, finish] },
    request: { path, json, leave: 'after first event' },
    expect: { calls: ['chat', 'admit', { call: 'aborted', of: 'chat' }] },
  },
  {
    name: 'a caller who leaves a blocking call frees the backend',
    script: { chat: [start, { waitMs: 'forever' }, finish] },
    skip: nothingWritten,
    request: { path, json: { messages }, leave: 'while the backend waits' },
    expect: { calls: ['chat', 'admit', { call: 'aborted', of: 'chat' }] },
  },
  {
    name: 'a caller who leaves the queue frees his place',
    script: { chat: [{ waitMs: 'forever' }, start, finish] },
    skip: nothingWritten,
    request: { path, json, leave: 'while the backend waits' },
    expect: { calls: ['chat', { call: 'aborted', of: 'chat' }] },
  },
];
