import type { Row } from '../row.ts';
import { asked, messages, model, path } from './chat-parts.ts';

/** Fields of other servers that switch the reasoning, and what the backend is asked. docs/model-api.md, M-15. */
const reasoning: readonly [sent: object, reasoning: object][] = [
  [{ chat_template_kwargs: { enable_thinking: false } }, { enabled: false }],
  [{ chat_template_kwargs: { thinking: true } }, { enabled: true }],
  [{ enable_thinking: false }, { enabled: false }],
  [{ think: false }, { enabled: false }],
  [{ think: 'high' }, { enabled: true, effort: 'high' }],
  [{ thinking: { type: 'disabled' } }, { enabled: false }],
  [{ reasoning_effort: 'none' }, { enabled: false, effort: 'none' }],
  [
    { reasoning_effort: 'low', enable_thinking: true },
    { enabled: true, effort: 'low' },
  ],
  [{ reasoning: { effort: 'medium' } }, { enabled: true, effort: 'medium' }],
  [{ reasoning: { enabled: false } }, { enabled: false }],
  [{ reasoning_budget: 0 }, { enabled: false }],
];

/** docs/model-api.md, M-13 and M-14. */
export const chatRequests: readonly Row[] = [
  {
    name: 'model may be left out: the active one answers',
    request: { path, json: { messages } },
    expect: { like: { model }, ...asked({ messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] }) },
  },
  {
    name: 'max_tokens and temperature reach the backend',
    request: { path, json: { model, messages, max_tokens: 50, temperature: 0.7 } },
    expect: asked({ model, maxTokens: 50, temperature: 0.7 }),
  },
  {
    name: 'max_completion_tokens, top_p, seed, stop and the penalties reach the backend',
    request: {
      path,
      json: {
        messages,
        max_completion_tokens: 9,
        top_p: 0.9,
        seed: -7,
        stop: ['\n', 'END'],
        presence_penalty: -2,
        frequency_penalty: 2,
        user: 'someone',
      },
    },
    expect: asked({
      maxTokens: 9,
      topP: 0.9,
      seed: -7,
      stop: ['\n', 'END'],
      presencePenalty: -2,
      frequencyPenalty: 2,
      format: { type: 'text' },
    }),
  },
  ...reasoning.map(
    ([sent, reasoning]): Row => ({
      name: `reasoning: ${JSON.stringify(sent)}`,
      request: { path, json: { messages, ...sent } },
      expect: asked({ reasoning }),
    }),
  ),
  {
    name: 'an assistant message is continued',
    request: {
      path,
      json: {
        messages: [...messages, { role: 'assistant', content: 'It is' }],
        continue_final_message: true,
        add_generation_prompt: false,
      },
    },
    expect: asked({ continues: true }),
  },
  ...['prefix', 'partial'].map(
    (field): Row => ({
      name: `an assistant message with ${field} is continued`,
      request: { path, json: { messages: [...messages, { role: 'assistant', content: 'It is', [field]: true }] } },
      expect: asked({ continues: true }),
    }),
  ),
  {
    name: 'max_tokens -1 is no limit, a seed may have 64 bits, and forms that mean text have no effect',
    request: {
      path,
      json: {
        messages,
        max_tokens: -1,
        seed: 2 ** 63,
        format: '',
        guided_json: null,
        text: { verbosity: 'low' },
        response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } },
      },
    },
    expect: asked({
      maxTokens: 1_048_576,
      seed: 2 ** 63,
      format: { type: 'json', shape: { kind: 'schema', schema: { type: 'object' } } },
    }),
  },
  {
    name: 'refusals, reasoning and arguments as objects in earlier messages; null for an absent detail',
    request: {
      path,
      json: {
        messages: [
          {
            role: 'user',
            content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: null } }],
          },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm' },
              { type: 'refusal', refusal: 'No.' },
            ],
            tool_calls: [{ id: 'a', type: 'function', function: { name: 'a.b', arguments: { x: 1 } } }],
          },
        ],
      },
    },
    expect: asked({
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          parts: [{ type: 'text', text: 'No.' }],
          toolCalls: [{ name: 'a.b', arguments: '{"x":1}' }],
        },
      ],
    }),
  },
  {
    name: 'allowed_tools: only these are shown, in the mode',
    request: {
      path,
      json: {
        messages,
        tools: ['a.b', 'c'].map((name) => ({ type: 'function', function: { name } })),
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'a.b' } }] },
        },
      },
    },
    expect: asked({ tools: { tools: [{ name: 'a.b' }], choice: 'required', parallel: true } }),
  },
  {
    name: 'stop may be one string',
    request: { path, json: { messages, stop: 'END' } },
    expect: asked({ stop: ['END'] }),
  },
  {
    name: 'roles system, developer (as system), user and assistant; name; parts',
    request: {
      path,
      json: {
        messages: [
          { role: 'system', content: 'S' },
          { role: 'developer', content: 'D' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
            name: 'Ann',
          },
          { role: 'assistant', content: 'A' },
          { role: 'assistant', content: null, tool_calls: [] },
          { role: 'user', content: '' },
        ],
      },
    },
    expect: asked({
      messages: [
        { role: 'system', parts: [{ type: 'text', text: 'S' }] },
        { role: 'system', parts: [{ type: 'text', text: 'D' }] },
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
          name: 'Ann',
        },
        { role: 'assistant', parts: [{ type: 'text', text: 'A' }] },
        { role: 'assistant', parts: [{ type: 'text', text: '' }] },
        { role: 'user', parts: [{ type: 'text', text: '' }] },
      ],
    }),
  },
  {
    name: 'images and audio reach the backend, which knows whether its model can read them',
    request: {
      path,
      json: {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: 'low' } },
              { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
            ],
          },
        ],
      },
    },
    expect: asked({
      messages: [
        {
          role: 'user',
          parts: [
            {
              type: 'image',
              source: { type: 'url', url: 'https://x.test/a.png' },
              detail: 'low',
              param: 'messages[0].content[0]',
            },
            {
              type: 'audio',
              source: { type: 'base64', data: 'UklGRg==', mimeType: 'audio/wav' },
              param: 'messages[0].content[1]',
            },
          ],
        },
      ],
    }),
  },
  {
    name: 'response_format text',
    request: { path, json: { messages, response_format: { type: 'text' } } },
    expect: asked({ format: { type: 'text' } }),
  },
  {
    name: 'response_format json_object asks for any JSON object',
    request: { path, json: { messages, response_format: { type: 'json_object' } } },
    expect: asked({ format: { type: 'json', shape: { kind: 'any' } } }),
  },
  {
    name: 'response_format json_schema asks for this schema',
    request: {
      path,
      json: {
        messages,
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'city',
            schema: { type: 'object', properties: { city: { type: 'string' } } },
            strict: true,
          },
        },
      },
    },
    expect: asked({
      format: {
        type: 'json',
        shape: { kind: 'schema', schema: { type: 'object', properties: { city: { type: 'string' } } } },
      },
    }),
  },
  {
    name: 'response_format json_object with a schema asks for this schema',
    request: {
      path,
      json: { messages, response_format: { type: 'json_object', schema: { type: 'object', properties: {} } } },
    },
    expect: asked({
      format: { type: 'json', shape: { kind: 'schema', schema: { type: 'object', properties: {} } } },
    }),
  },
  {
    name: 'fields that nobody here knows are ignored',
    request: {
      path,
      json: {
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: {} }], weight: 1 }],
        store: true,
        metadata: { a: 'b' },
        service_tier: 'auto',
        parallel_tool_calls: true,
        reasoning_effort: 'low',
      },
    },
    expect: asked({ messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] }),
  },
  {
    name: 'null is a field not sent',
    request: {
      path,
      json: {
        model: null,
        messages: [{ role: 'user', content: 'Hi', name: null }],
        max_tokens: null,
        max_completion_tokens: null,
        temperature: null,
        top_p: null,
        seed: null,
        stop: null,
        stream: null,
        stream_options: null,
        response_format: null,
        presence_penalty: null,
        frequency_penalty: null,
        logprobs: null,
        top_logprobs: null,
        n: null,
        user: null,
        tools: null,
        functions: null,
        tool_choice: null,
        function_call: null,
        logit_bias: null,
        modalities: null,
        audio: null,
      },
    },
    expect: asked({ stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } }),
  },
  {
    name: 'empty tools, functions and logit_bias, n of 1 and text modalities say nothing',
    request: {
      path,
      json: { messages, tools: [], functions: [], tool_choice: 'none', logit_bias: {}, n: 1, modalities: ['text'] },
    },
    expect: { status: 200 },
  },
  {
    name: 'max_tokens and max_completion_tokens may both be sent, equal',
    request: { path, json: { messages, max_tokens: 5, max_completion_tokens: 5 } },
    expect: asked({ maxTokens: 5 }),
  },
];
