import { expect } from 'vitest';
import type { ChatStep } from '../../scripted-backend/script.ts';
import type { Row } from '../row.ts';
import { asked, finish, head, messages, metrics, path, says, start, usage } from './chat-parts.ts';

const properties = { city: { type: 'string' } };
const parameters = { type: 'object', properties, required: ['city'] };
const weather = { type: 'function', function: { name: 'get_weather', description: 'Weather now.', parameters } };
const ping = { type: 'function', function: { name: 'ping' } };
const tools = [weather, ping];
const use = {
  tools: [
    { name: 'get_weather', description: 'Weather now.', parameters: { ...parameters, additionalProperties: false } },
    { name: 'ping', parameters: { type: 'object', properties: {}, additionalProperties: false } },
  ],
  choice: 'auto',
  parallel: true,
};

const calls = (index: number, text: string, name?: string): ChatStep => ({
  event: { type: 'tool_call', index, ...(name === undefined ? {} : { name }), arguments: text },
});
const script = {
  chat: [start, calls(0, '', 'get_weather'), calls(0, '{"city":'), calls(0, '"Rome"}'), calls(1, '{}', 'ping'), finish],
};
const cut: ChatStep = {
  event: { type: 'finish', reason: 'length', usage: { promptTokens: 12, completionTokens: 4 }, metrics },
};

const id = (index: number) => expect.stringMatching(new RegExp(`^call_.+-${index}$`));
const whole = [
  { id: id(0), type: 'function', function: { name: 'get_weather', arguments: '{"city":"Rome"}' } },
  { id: id(1), type: 'function', function: { name: 'ping', arguments: '{}' } },
];
const answer = (message: object, finish_reason: string) => ({
  ...head,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason, logprobs: null }],
  usage,
  metrics,
});
const chunk = (delta: object, finish_reason: string | null = null) => ({
  ...head,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason, logprobs: null }],
});
/** docs/model-api.md, M-26 and M-27. */
export const chatTools: readonly Row[] = [
  {
    name: 'tools reach the backend: schemas closed, choice auto, parallel',
    request: { path, json: { messages, tools } },
    expect: asked({ tools: use }),
  },
  ...(['required', { type: 'function', function: { name: 'ping' } }] as const).map(
    (tool_choice): Row => ({
      name: `tool_choice ${JSON.stringify(tool_choice)}, one call at most`,
      request: { path, json: { messages, tools, tool_choice, parallel_tool_calls: false } },
      expect: asked({
        tools: { ...use, choice: tool_choice === 'required' ? 'required' : { name: 'ping' }, parallel: false },
      }),
    }),
  ),
  {
    name: 'tools with a response_format: both reach the backend',
    request: { path, json: { messages, tools, response_format: { type: 'json_object' } } },
    expect: asked({ tools: use, format: { type: 'json', shape: { kind: 'any' } } }),
  },
  {
    name: 'a named tool is called once, whatever parallel_tool_calls is',
    request: {
      path,
      json: {
        messages,
        tools,
        tool_choice: { type: 'function', function: { name: 'ping' } },
        parallel_tool_calls: true,
      },
    },
    expect: asked({ tools: { ...use, choice: { name: 'ping' }, parallel: false } }),
  },
  {
    name: 'tool_choice none: the model is shown no tools',
    request: { path, json: { messages, tools, tool_choice: 'none', response_format: { type: 'json_object' } } },
    expect: { calls: [{ call: 'chat', request: expect.not.objectContaining({ tools: expect.anything() }) }, 'admit'] },
  },
  {
    name: 'calls of earlier answers and their outputs reach the backend',
    request: {
      path,
      json: {
        messages: [
          ...messages,
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { ...whole[0], id: 'a' },
              { ...whole[1], id: 'b', function: { name: 'ping', arguments: '' } },
            ],
          },
          { role: 'tool', tool_call_id: 'b', content: 'pong' },
          { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'Sun' }] },
        ],
      },
    },
    expect: asked({
      messages: [
        { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
        {
          role: 'assistant',
          parts: [{ type: 'text', text: '' }],
          toolCalls: [
            { id: 'a', name: 'get_weather', arguments: '{"city":"Rome"}' },
            { id: 'b', name: 'ping', arguments: '{}' },
          ],
        },
        { role: 'tool', parts: [{ type: 'text', text: 'pong' }], toolCallId: 'b' },
        { role: 'tool', parts: [{ type: 'text', text: 'Sun' }], toolCallId: 'a' },
      ],
    }),
  },
  {
    name: 'a blocking answer with calls: no content, finish_reason tool_calls',
    script,
    request: { path, json: { messages, tools } },
    expect: { json: answer({ content: null, tool_calls: whole }, 'tool_calls') },
  },
  {
    name: 'text before a call is content',
    script: { chat: [start, says('Let me look.'), calls(0, '{}', 'ping'), finish] },
    request: { path, json: { messages, tools } },
    expect: { json: answer({ content: 'Let me look.', tool_calls: [{ ...whole[1], id: id(0) }] }, 'tool_calls') },
  },
  {
    name: 'a call that is cut: finish_reason length, and the arguments as far as they got',
    script: { chat: [start, calls(0, '{"city":"Ro', 'get_weather'), cut] },
    request: { path, json: { messages, tools } },
    expect: {
      json: answer(
        { content: null, tool_calls: [{ ...whole[0], function: { name: 'get_weather', arguments: '{"city":"Ro' } }] },
        'length',
      ),
    },
  },
  {
    name: 'the ids of calls have the id of the request in them',
    script,
    request: { path, json: { messages, tools }, headers: { 'x-request-id': 'mine-1' } },
    expect: {
      like: { choices: [{ message: { tool_calls: [{ id: 'call_mine-1-0' }, { id: 'call_mine-1-1' }] } }] },
    },
  },
  {
    name: 'a stream with calls: id, type and name first, then the arguments in parts',
    script,
    request: { path, json: { messages, tools, stream: true } },
    expect: {
      events: [
        chunk({ role: 'assistant' }),
        chunk({
          tool_calls: [{ index: 0, id: id(0), type: 'function', function: { name: 'get_weather', arguments: '' } }],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] }),
        chunk({ tool_calls: [{ index: 1, id: id(1), type: 'function', function: { name: 'ping', arguments: '{}' } }] }),
        { ...chunk({}, 'tool_calls'), usage, metrics },
        '[DONE]',
      ],
    },
  },
  {
    name: 'a model without tools refuses them',
    script: { chat: [{ fail: { code: 'unsupported_parameter', message: 'No tools.', param: 'tools' } }] },
    request: { path, json: { messages, tools } },
    expect: { status: 400, error: { code: 'unsupported_parameter', param: 'tools', type: 'invalid_request_error' } },
  },
];
