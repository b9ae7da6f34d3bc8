import { expect } from 'vitest';
import type { ChatStep } from '../../scripted-backend/script.ts';
import type { Row } from '../row.ts';
import { asked, finish, metrics, model, says, start, thinks } from './chat-parts.ts';

const path = '/v1/responses';
const chat = [start, says('Hello'), finish];
const text = (text: string) => [{ type: 'text', text }];
const plain = { stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } };
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const image = 'data:image/png;base64,iVBORw0KGgo=';

const ping = { type: 'function', name: 'ping' };
/** Requests, and what the backend is asked. docs/model-api.md, M-24. */
const requests: readonly [name: string, sent: object, request: object][] = [
  ['a text', { input: 'Hi' }, { messages: [{ role: 'user', parts: text('Hi') }], ...plain }],
  [
    'tools of other types are left out',
    { input: 'Hi', tools: [{ type: 'web_search', external_web_access: false }, ping, { type: 'custom', name: 'c' }] },
    { tools: { tools: [{ name: 'ping' }], choice: 'auto', parallel: true } },
  ],
  [
    'allowed_tools and reasoning',
    {
      input: 'Hi',
      tools: [ping, { ...ping, name: 'b.c' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'b.c' }] },
      reasoning: { effort: 'none', summary: 'auto' },
      max_output_tokens: -1,
    },
    {
      tools: { tools: [{ name: 'b.c' }], choice: 'auto', parallel: true },
      reasoning: { enabled: false, effort: 'none' },
      maxTokens: 1_048_576,
    },
  ],
  [
    'instructions come first, as the system',
    { model, input: 'Hi', instructions: 'Be brief.' },
    {
      model,
      messages: [
        { role: 'system', parts: text('Be brief.') },
        { role: 'user', parts: text('Hi') },
      ],
    },
  ],
  [
    'items: messages, parts, and the output of an earlier response without its reasoning',
    {
      input: [
        { role: 'developer', content: 'Be brief.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
        { id: 'rs_1', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] },
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
        },
        { role: 'user', content: 'And?' },
      ],
    },
    {
      messages: [
        { role: 'system', parts: text('Be brief.') },
        { role: 'user', parts: text('Hi') },
        { role: 'assistant', parts: text('Hello') },
        { role: 'user', parts: text('And?') },
      ],
    },
  ],
  [
    'audio',
    { input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }] }] },
    {
      messages: [
        {
          role: 'user',
          parts: [{ type: 'audio', source: { type: 'base64', data: 'UklGRg==', mimeType: 'audio/wav' } }],
        },
      ],
    },
  ],
  [
    'an image',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: image, detail: 'low' }] }] },
    {
      messages: [
        {
          role: 'user',
          parts: [
            {
              type: 'image',
              source: { type: 'url', url: image },
              detail: 'low',
            },
          ],
        },
      ],
    },
  ],
  [
    'settings, and extras that are ignored',
    { input: 'Hi', max_output_tokens: 9, temperature: 0, top_p: 0.5, top_logprobs: 2, reasoning: { effort: 'low' } },
    { maxTokens: 9, temperature: 0, topP: 0.5, topLogprobs: 2 },
  ],
  ['log-probabilities by include', { input: 'Hi', include: ['message.output_text.logprobs'] }, { topLogprobs: 0 }],
  [
    'tools with JSON',
    { input: 'Hi', tools: [ping], text: { format: { type: 'json_object' } } },
    { format: { type: 'json', shape: { kind: 'any' } }, tools: expect.objectContaining({ choice: 'auto' }) },
  ],
  [
    'JSON with a schema',
    { input: 'Hi', text: { format: { type: 'json_object', schema } } },
    { format: { type: 'json', shape: { kind: 'schema', schema } } },
  ],
  [
    'a schema',
    { input: 'Hi', text: { format: { type: 'json_schema', name: 'place', schema, strict: true }, verbosity: 'low' } },
    { format: { type: 'json', shape: { kind: 'schema', schema } } },
  ],
  [
    'JSON',
    { input: 'Hi', text: { format: { type: 'json_object' } } },
    { format: { type: 'json', shape: { kind: 'any' } } },
  ],
  [
    'values that say nothing, and null',
    {
      ...{ input: 'Hi', model: null, instructions: null, text: null, metadata: null, store: false, tools: [] },
      ...{ tool_choice: 'auto', background: false, truncation: 'disabled', previous_response_id: null, stream: null },
    },
    { messages: [{ role: 'user', parts: text('Hi') }] },
  ],
  [
    'functions',
    { input: 'Hi', tools: [ping], tool_choice: { type: 'function', name: 'ping' }, parallel_tool_calls: false },
    {
      tools: {
        tools: [{ name: 'ping', parameters: { type: 'object', properties: {}, additionalProperties: false } }],
        choice: { name: 'ping' },
        parallel: false,
      },
    },
  ],
  [
    'calls of an earlier answer, with its text, and their outputs',
    {
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Let me look.' }] },
        { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'ping', arguments: '', status: 'completed' },
        { type: 'function_call', call_id: 'b', name: 'ping', arguments: '{}' },
        { type: 'function_call_output', call_id: 'b', output: 'pong' },
        { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'pang' }] },
      ],
    },
    {
      messages: [
        { role: 'user', parts: text('Hi') },
        {
          role: 'assistant',
          parts: text('Let me look.'),
          toolCalls: ['a', 'b'].map((id) => ({ id, name: 'ping', arguments: '{}' })),
        },
        { role: 'tool', parts: text('pong'), toolCallId: 'b' },
        { role: 'tool', parts: text('pang'), toolCallId: 'a' },
      ],
    },
  ],
];

const answer = {
  id: 'resp_generated-id',
  object: 'response',
  created_at: expect.any(Number),
  status: 'completed',
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model,
  output: [
    {
      id: 'msg_generated-id',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
    },
  ],
  parallel_tool_calls: true,
  previous_response_id: null,
  store: false,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
  usage: {
    input_tokens: 12,
    input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
    output_tokens: 4,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 16,
  },
  metrics,
};
const begun = { ...answer, status: 'in_progress', output: [], usage: null, metrics: undefined };
const { metrics: _, ...begunAnswer } = begun;
const cut = { event: { type: 'finish', reason: 'length', usage: { promptTokens: 1, completionTokens: 1 }, metrics } };
const inMessage = { item_id: 'msg_generated-id', output_index: 1, content_index: 0 };
const inReasoning = { item_id: 'rs_generated-id', output_index: 0, content_index: 0 };
const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const message = (status: string, content: object[]) => ({
  ...{ id: 'msg_generated-id', type: 'message', role: 'assistant', status, content },
});
const reasoning = (status: string, content: object[]) => ({
  ...{ id: 'rs_generated-id', type: 'reasoning', status, summary: [], content },
});
const called = (index: number, text: string, name?: string): ChatStep => ({
  event: { type: 'tool_call', index, ...(name === undefined ? {} : { name }), arguments: text },
});
const callItem = (status: string, { number, name, text }: { number: number; name: string; text: string }) => ({
  ...{ id: `fc_generated-id-${number}`, type: 'function_call', status, call_id: `call_generated-id-${number}` },
  ...{ name, arguments: text },
});
const inCall = { item_id: 'fc_generated-id-0', output_index: 0 };
const thought = { type: 'reasoning_text', text: 'Hm' };

export const responsesRows: readonly Row[] = [
  ...requests.map(
    ([name, json, request]): Row => ({
      name: `asks the backend: ${name}`,
      script: { chat },
      request: { path, json },
      expect: asked(request),
    }),
  ),
  {
    name: 'the whole answer',
    script: { chat },
    request: { path, json: { input: 'Hi', metadata: { order: 'A-1' } } },
    expect: { json: { ...answer, metadata: { order: 'A-1' } } },
  },
  {
    name: 'an answer with reasoning that was cut',
    script: { chat: [start, thinks('Hm'), says('Hel'), cut as never] },
    request: { path, json: { input: 'Hi' } },
    expect: {
      like: {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [reasoning('completed', [thought]), message('incomplete', [part('Hel')])],
        usage: { input_tokens: 1, total_tokens: 2 },
      },
    },
  },
  {
    name: 'an answer that repeats itself is incomplete, with the true reason',
    script: { chat: [start, says('Hel'), { event: { ...cut.event, reason: 'repetition' } } as never] },
    request: { path, json: { input: 'Hi' } },
    expect: { like: { status: 'incomplete', incomplete_details: { reason: 'repetition' } } },
  },
  ...[false, true].map(
    (stream): Row => ({
      name: `tools that are no functions are left out, and a header names them${stream ? ': streamed' : ''}`,
      script: { chat },
      request: {
        path,
        json: {
          input: 'Hi',
          stream,
          tools: [{ type: 'web_search' }, ping, ...Array(9).fill({ type: 'custom', name: 'é' })],
        },
      },
      expect: {
        headers: {
          'assay-warning':
            /^left out, because only functions are supported: tools\[0\] \(web_search\), (tools\[\d\] \(custom\), ){6}tools\[8\] \(custom\) and 2 more$/,
        },
      },
    }),
  ),
  {
    name: 'function calls: items of the output, after its text',
    script: { chat: [start, says('Hm.'), called(0, '{"a":', 'f'), called(0, '1}'), called(1, '{}', 'ping'), finish] },
    request: { path, json: { input: 'Hi', tools: [ping] } },
    expect: {
      like: {
        status: 'completed',
        tools: [ping],
        output: [
          { type: 'message' },
          callItem('completed', { number: 0, name: 'f', text: '{"a":1}' }),
          callItem('completed', { number: 1, name: 'ping', text: '{}' }),
        ],
      },
    },
  },
  {
    name: 'the events of a function call, which was cut',
    script: { chat: [start, called(0, '', 'f'), called(0, '{"a"'), cut as never] },
    request: { path, json: { input: 'Hi', stream: true, tools: [ping] } },
    expect: {
      events: [
        expect.objectContaining({ type: 'response.created' }),
        expect.objectContaining({ type: 'response.in_progress' }),
        {
          ...{ type: 'response.output_item.added', output_index: 0, sequence_number: 2 },
          item: callItem('in_progress', { number: 0, name: 'f', text: '' }),
        },
        { type: 'response.function_call_arguments.delta', ...inCall, delta: '{"a"', sequence_number: 3 },
        { type: 'response.function_call_arguments.done', ...inCall, name: 'f', arguments: '{"a"', sequence_number: 4 },
        {
          ...{ type: 'response.output_item.done', output_index: 0, sequence_number: 5 },
          item: callItem('incomplete', { number: 0, name: 'f', text: '{"a"' }),
        },
        expect.objectContaining({ type: 'response.incomplete' }),
      ],
    },
  },
  {
    name: 'the events of a stream: life cycle, reasoning, message',
    script: { chat: [start, thinks('Hm'), says('Hel'), says('lo'), finish] },
    request: { path, json: { input: 'Hi', stream: true } },
    expect: {
      headers: { 'content-type': /^text\/event-stream/ },
      events: [
        { type: 'response.created', response: begunAnswer },
        { type: 'response.in_progress', response: begunAnswer },
        { type: 'response.output_item.added', output_index: 0, item: reasoning('in_progress', []) },
        { type: 'response.content_part.added', ...inReasoning, part: { type: 'reasoning_text', text: '' } },
        { type: 'response.reasoning_text.delta', ...inReasoning, delta: 'Hm' },
        { type: 'response.reasoning_text.done', ...inReasoning, text: 'Hm' },
        { type: 'response.content_part.done', ...inReasoning, part: thought },
        { type: 'response.output_item.done', output_index: 0, item: reasoning('completed', [thought]) },
        { type: 'response.output_item.added', output_index: 1, item: message('in_progress', []) },
        { type: 'response.content_part.added', ...inMessage, part: part('') },
        { type: 'response.output_text.delta', ...inMessage, delta: 'Hel', logprobs: [] },
        { type: 'response.output_text.delta', ...inMessage, delta: 'lo', logprobs: [] },
        { type: 'response.output_text.done', ...inMessage, text: 'Hello', logprobs: [] },
        { type: 'response.content_part.done', ...inMessage, part: part('Hello') },
        { type: 'response.output_item.done', output_index: 1, item: message('completed', [part('Hello')]) },
        {
          type: 'response.completed',
          response: {
            ...answer,
            output: [reasoning('completed', [thought]), message('completed', [part('Hello')])],
            usage: {
              input_tokens: 12,
              input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
              output_tokens: 4,
              total_tokens: 16,
            },
          },
        },
      ].map((event, i) => ({ ...event, sequence_number: i })),
    },
  },
  {
    name: 'an error after the start is the last event',
    script: { chat: [start, says('Hel'), { fail: { code: 'engine_failed', message: 'It broke.' } }] },
    request: { path, json: { input: 'Hi', stream: true } },
    expect: {
      events: [
        ...Array.from({ length: 5 }, () => expect.anything()),
        { type: 'error', sequence_number: 5, code: 'engine_failed', message: 'It broke.', param: null },
      ],
    },
  },
  {
    name: 'an error before the start is a status',
    script: { chat: [{ fail: { code: 'model_not_loaded', message: 'Load it.' } }] },
    request: { path, json: { input: 'Hi', stream: true } },
    expect: { status: 409, error: 'model_not_loaded' },
  },
];
