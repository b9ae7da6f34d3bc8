import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row } from '../row.ts';
import { finish, messages, path, says, start } from './chat-parts.ts';

/** The member (or members) at fault, the code, and the path if it is not the member's name. */
type Refused = readonly [members: object, code: ErrorCode, param?: string];

const tool = (name: string, parameters?: object) => ({ type: 'function', function: { name, parameters } });
const called = (id: string, text = '{}') => ({
  role: 'assistant',
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: text } }],
});

const refused: readonly Refused[] = [
  [{ messages: undefined }, 'missing_field', 'messages'],
  [{ messages: [] }, 'invalid_value', 'messages'],
  [{ messages: 'Hi' }, 'invalid_type', 'messages'],
  [{ messages: [3] }, 'invalid_type', 'messages[0]'],
  [{ messages: [{ content: 'Hi' }] }, 'missing_field', 'messages[0].role'],
  [{ messages: [{ role: 'function', content: 'x' }] }, 'invalid_value', 'messages[0].role'],
  [{ messages: [{ role: 'tool', content: 'x' }] }, 'missing_field', 'messages[0].tool_call_id'],
  [{ messages: [{ role: 'tool', content: 'x', tool_call_id: 'a' }] }, 'invalid_value', 'messages[0].tool_call_id'],
  [{ messages: [called('a'), { role: 'tool', tool_call_id: 'a' }] }, 'missing_field', 'messages[1].content'],
  [{ messages: [{ role: 'user' }] }, 'missing_field', 'messages[0].content'],
  [{ messages: [{ role: 'user', content: null }] }, 'missing_field', 'messages[0].content'],
  [{ messages: [{ role: 'user', content: [] }] }, 'invalid_value', 'messages[0].content'],
  [{ messages: [{ role: 'user', content: 3 }] }, 'invalid_type', 'messages[0].content'],
  [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'invalid_value', 'messages[0].content[0].type'],
  [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'missing_field', 'messages[0].content[0].text'],
  [{ messages: [{ role: 'assistant', tool_calls: [{}] }] }, 'missing_field', 'messages[0].tool_calls[0].id'],
  [{ messages: [{ ...called('a'), role: 'user', content: 'x' }] }, 'invalid_value', 'messages[0].tool_calls'],
  ...['no', '[]', '{"a":'].map(
    (text): Refused => [
      { messages: [called('a', text)] },
      'invalid_value',
      'messages[0].tool_calls[0].function.arguments',
    ],
  ),
  [{ model: 3 }, 'invalid_type', 'model'],
  [{ model: '' }, 'invalid_value', 'model'],
  [{ max_tokens: 0 }, 'invalid_value', 'max_tokens'],
  [{ max_tokens: 1.5 }, 'invalid_type', 'max_tokens'],
  [{ max_tokens: '5' }, 'invalid_type', 'max_tokens'],
  [{ max_tokens: 1_048_577 }, 'invalid_value', 'max_tokens'],
  [{ max_completion_tokens: -2 }, 'invalid_value', 'max_completion_tokens'],
  [{ max_tokens: 5, max_completion_tokens: 6 }, 'alias_conflict', 'max_tokens'],
  [{ temperature: -0.1 }, 'invalid_value', 'temperature'],
  [{ temperature: 2.1 }, 'invalid_value', 'temperature'],
  [{ temperature: 'hot' }, 'invalid_type', 'temperature'],
  [{ top_p: 1.1 }, 'invalid_value', 'top_p'],
  [{ seed: 0.5 }, 'invalid_type', 'seed'],
  [{ seed: 2 ** 65 }, 'invalid_value', 'seed'],
  [{ stop: '' }, 'invalid_value', 'stop'],
  [{ stop: ['a', ''] }, 'invalid_value', 'stop[1]'],
  [{ stop: [3] }, 'invalid_type', 'stop[0]'],
  [{ stop: Array(17).fill('a') }, 'invalid_value', 'stop'],
  [{ stream: 'yes' }, 'invalid_type', 'stream'],
  [{ stream_options: true }, 'invalid_type', 'stream_options'],
  [{ presence_penalty: 2.5 }, 'invalid_value', 'presence_penalty'],
  [{ frequency_penalty: -2.5 }, 'invalid_value', 'frequency_penalty'],
  [{ logprobs: 1 }, 'invalid_type', 'logprobs'],
  [{ logprobs: true, top_logprobs: 21 }, 'invalid_value', 'top_logprobs'],
  [{ top_logprobs: 1 }, 'invalid_value', 'top_logprobs'],
  [{ response_format: 'json' }, 'invalid_type', 'response_format'],
  [{ response_format: { type: 'xml' } }, 'invalid_value', 'response_format.type'],
  [{ response_format: { type: 'json_schema' } }, 'missing_field', 'response_format.json_schema'],
  [
    { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
    'missing_field',
    'response_format.json_schema.schema',
  ],
  [
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'object', not: { type: 'null' } } },
      },
    },
    'unsupported_schema',
    'response_format.json_schema.schema.not',
  ],
  [
    // As the shorthand of a task it would be an object with a field `type`.
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'string' } } } },
    'unsupported_schema',
    'response_format.json_schema.schema',
  ],
  [
    { response_format: { type: 'json_object', schema: { type: 'object', not: { type: 'null' } } } },
    'unsupported_schema',
    'response_format.schema.not',
  ],
  [{ response_format: { type: 'json_object', schema: 'x' } }, 'invalid_type', 'response_format.schema'],
  [{ tools: [{ type: 'function' }] }, 'missing_field', 'tools[0].function'],
  [{ tools: [{ type: 'web_search' }] }, 'unsupported_parameter', 'tools[0].type'],
  [{ tools: [tool('a b')] }, 'invalid_value', 'tools[0].function.name'],
  [{ tools: [tool('f'), tool('f')] }, 'invalid_value', 'tools[1].function.name'],
  [{ tools: Array.from({ length: 1025 }, (_, i) => tool(`f${i}`)) }, 'invalid_value', 'tools'],
  [
    { tools: [tool('f', { type: 'object', not: { type: 'null' } })] },
    'unsupported_schema',
    'tools[0].function.parameters.not',
  ],
  [{ tools: [tool('f', { type: 'string' })] }, 'unsupported_schema', 'tools[0].function.parameters'],
  [{ tools: [tool('f')], tool_choice: 'any' }, 'invalid_value', 'tool_choice'],
  [
    { tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'g' } } },
    'invalid_value',
    'tool_choice.function.name',
  ],
  [{ tools: [tool('f')], parallel_tool_calls: 1 }, 'invalid_type', 'parallel_tool_calls'],
  [{ functions: [{ name: 'f' }] }, 'unsupported_parameter', 'functions'],
  [{ tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
  [{ logit_bias: { 50256: -100 } }, 'unsupported_parameter', 'logit_bias'],
  [{ guided_json: { type: 'object' } }, 'unsupported_parameter', 'guided_json'],
  [{ guided_choice: ['a', 'b'] }, 'unsupported_parameter', 'guided_choice'],
  [{ structured_outputs: { json: {} } }, 'unsupported_parameter', 'structured_outputs'],
  [{ grammar: 'root ::= "a"' }, 'unsupported_parameter', 'grammar'],
  [{ regex: 'a|b' }, 'unsupported_parameter', 'regex'],
  [{ format: 'json' }, 'unsupported_parameter', 'format'],
  [{ format: { type: 'object' } }, 'unsupported_parameter', 'format'],
  [{ output_format: { type: 'json_schema' } }, 'unsupported_parameter', 'output_format'],
  [{ text: { format: { type: 'json_object' } } }, 'unsupported_parameter', 'text'],
  [{ think: 'often' }, 'invalid_value', 'think'],
  [{ reasoning_effort: 'much' }, 'invalid_value', 'reasoning_effort'],
  [{ enable_thinking: true, reasoning_effort: 'none' }, 'invalid_value', 'reasoning_effort'],
  [{ chat_template_kwargs: { thinking_style: 1 } }, 'unsupported_parameter', 'chat_template_kwargs.thinking_style'],
  [{ chat_template_kwargs: { enable_thinking: 'no' } }, 'invalid_value', 'chat_template_kwargs.enable_thinking'],
  [{ thinking: { type: 'enabled', budget_tokens: 100 } }, 'unsupported_parameter', 'thinking.budget_tokens'],
  [{ reasoning: { exclude: true } }, 'unsupported_parameter', 'reasoning.exclude'],
  [{ thinking_budget: 256 }, 'unsupported_parameter', 'thinking_budget'],
  [{ continue_final_message: true }, 'invalid_value', 'continue_final_message'],
  [{ messages: [{ role: 'user', content: 'It is', prefix: true }] }, 'invalid_value', 'messages[0].prefix'],
  [{ add_generation_prompt: false }, 'unsupported_parameter', 'add_generation_prompt'],
  [
    {
      messages: [{ role: 'assistant', content: 'It is' }],
      continue_final_message: true,
      response_format: { type: 'json_object' },
    },
    'unsupported_parameter',
    'continue_final_message',
  ],
  [
    { messages: [{ role: 'user', content: [{ type: 'refusal', refusal: 'No.' }] }] },
    'invalid_value',
    'messages[0].content[0].type',
  ],
  [
    {
      tools: [tool('f')],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] },
      },
    },
    'invalid_value',
    'tool_choice',
  ],
  [{ n: 2 }, 'unsupported_parameter', 'n'],
  [{ n: 0 }, 'invalid_value', 'n'],
  [{ modalities: ['text', 'audio'] }, 'unsupported_parameter', 'modalities'],
  [{ audio: { voice: 'alloy' } }, 'unsupported_parameter', 'audio'],
];

/** The backend's errors before the stream begins: code, status, type (docs/model-api.md, M-1). */
const thrown = [
  ['model_not_found', 404, 'not_found_error'],
  ['model_not_loaded', 409, 'conflict_error'],
  ['input_too_long', 400, 'invalid_request_error'],
  ['unsupported_modality', 400, 'invalid_request_error'],
  ['overloaded', 429, 'rate_limit_error'],
  ['engine_failed', 500, 'server_error'],
  ['timeout', 500, 'server_error'],
  ['backend_unreachable', 500, 'server_error'],
] as const;

export const chatRefusals: readonly Row[] = [
  ...refused.map(
    ([members, code, param]): Row => ({
      name: `400 ${code}: ${JSON.stringify(members).slice(0, 100)}`,
      request: { path, json: { messages, ...members } },
      expect: {
        status: 400,
        error: { code, type: 'invalid_request_error', ...(param === undefined ? {} : { param }) },
        calls: [],
      },
    }),
  ),
  ...['1e999', '-1e999', 'NaN'].map(
    (number): Row => ({
      name: `temperature ${number} is 400`,
      request: { path, body: `{"messages":[{"role":"user","content":"Hi"}],"temperature":${number}}` },
      expect: { status: 400, error: number === 'NaN' ? 'malformed_json' : 'invalid_value', calls: [] },
    }),
  ),
  ...thrown.flatMap(([code, status, type]): Row[] =>
    [false, true].map((stream) => ({
      name: `${status} ${code} before a ${stream ? 'stream' : 'blocking answer'}`,
      script: { chat: [{ fail: { code } }] },
      request: { path, json: { messages, stream } },
      expect: { status, error: { code, type }, headers: { 'content-type': /^application\/json/ } },
    })),
  ),
  {
    name: '429 overloaded says when to come again',
    script: { chat: [{ fail: { code: 'overloaded', retryAfterSeconds: 3.2 } }] },
    request: { path, json: { messages } },
    expect: { status: 429, error: 'overloaded', headers: { 'retry-after': '4' } },
  },
  {
    name: '429 rate_limited: the quota of the key',
    app: { keyForModels: true, quota: 0 },
    request: { path, json: { messages } },
    expect: { status: 429, error: { code: 'rate_limited', type: 'rate_limit_error' }, headers: { 'retry-after': '7' } },
  },
  {
    name: '500 with an error that is none of ours: nothing of it is told',
    script: { chat: [{ fail: { crash: 'at /home/me/secret.ts:3' } }] },
    request: { path, json: { messages } },
    expect: { status: 500, error: { code: 'internal_error', message: /^(?!.*secret)/ } },
  },
  {
    name: '500 when a blocking answer breaks off',
    script: { chat: [start, says('Hel'), { fail: { code: 'engine_failed' } }] },
    request: { path, json: { messages } },
    expect: { status: 500, error: 'engine_failed' },
  },
  {
    name: '500 when the backend ends without a finish',
    script: { chat: [start, says('Hel')] },
    request: { path, json: { messages } },
    expect: { status: 500, error: 'engine_failed' },
  },
  {
    name: '415 without a JSON content type, before the syntax',
    request: { path, body: '{', headers: { 'content-type': 'text/plain' } },
    expect: { status: 415, error: 'unsupported_media_type', calls: [] },
  },
  {
    name: '415 without a content type',
    request: { path, body: '{}', headers: { 'content-type': null } },
    expect: { status: 415, error: 'unsupported_media_type', calls: [] },
  },
  {
    name: '413 for a body over 20 MiB',
    request: { path, chunks: Array(21).fill(' '.repeat(1024 * 1024)) },
    expect: { status: 413, error: { code: 'request_too_large', type: 'invalid_request_error' }, calls: [] },
  },
  {
    name: '403 for a key that may not use the model',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'] } } },
    request: { path, json: { model: 'assay/starter', messages } },
    expect: { status: 403, error: 'model_not_allowed', calls: [] },
  },
  {
    name: '403 for a key that may not use the active model, which the request does not name',
    app: { keyForModels: true, keys: { 'test-key': { models: ['org/*'] } } },
    script: { chat: [start, { waitMs: 'forever' }, finish] },
    request: { path, json: { messages } },
    expect: { status: 403, error: 'model_not_allowed' },
  },
];
