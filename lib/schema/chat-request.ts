import * as v from 'valibot';
import { object, variant } from '../validation/objects.ts';
import { aliases, rule } from '../validation/rules.ts';
import { cacheSalt } from './cache-salt.ts';
import { answeredCalls, toolFields, toolUseFields } from './chat-tool-rules.ts';
import { ChatToolChoice, chatToolCalls, chatTools } from './chat-tools.ts';
import { jsonObject } from './json-object.ts';
import { AudioPart, ImagePart, ImageUrl, InputAudio, TextPart } from './message.ts';
import * as sampling from './sampling-fields.ts';
import { isEmpty, unsupported } from './unsupported.ts';

// Requests of POST /v1/chat/completions. Unknown fields are ignored, because clients send extra ones. Null counts as
// not sent, because OpenAI's own clients send it for absent fields (docs/interface.md, M-14).

const noFunctions = unsupported(isEmpty, 'is not supported: send tools');
const noFunctionCall = unsupported(
  (value) => value === 'none' || value === 'auto',
  'is not supported: send tools and tool_choice',
);

const noConstraint = unsupported(
  (value) => value === '' || isEmpty(value),
  'is not supported: send response_format with a JSON Schema, which can have pattern and enum',
);
/** Fields in which other servers (vLLM, SGLang, llama.cpp) take the form of the answer. */
const otherConstraints = {
  guided_json: noConstraint,
  guided_regex: noConstraint,
  guided_choice: noConstraint,
  guided_grammar: noConstraint,
  structured_outputs: noConstraint,
  grammar: noConstraint,
  ebnf: noConstraint,
  regex: noConstraint,
  json_schema: noConstraint,
};

export const ChatTextPart = object(TextPart.entries);
export const ChatImageUrlPart = object({ type: v.literal('image_url'), image_url: object(ImageUrl.entries) });
export const ChatImagePart = object(ImagePart.entries);
export const ChatAudioPart = object(AudioPart.entries);
export const ChatInputAudioPart = object({
  type: v.literal('input_audio'),
  input_audio: object(InputAudio.entries),
});

export const ChatContentPart = variant('type', [
  ChatTextPart,
  ChatImageUrlPart,
  ChatImagePart,
  ChatAudioPart,
  ChatInputAudioPart,
]);

export const ChatMessage = v.pipe(
  object({
    role: v.pipe(
      v.picklist(['system', 'developer', 'user', 'assistant', 'tool']),
      v.description('developer is treated as system. tool is the output of a tool call.'),
    ),
    content: v.nullish(v.union([v.string(), v.pipe(v.array(ChatContentPart), v.minLength(1), v.maxLength(1024))])),
    name: v.nullish(v.pipe(v.string(), v.maxLength(256))),
    tool_calls: v.nullish(
      v.pipe(chatToolCalls, v.description('For an assistant message: the tool calls that it made.')),
    ),
    tool_call_id: v.nullish(
      v.pipe(v.string(), v.maxLength(256), v.description('For a tool message: the id of the call that it answers.')),
    ),
  }),
  rule((message) =>
    message.role === 'assistant' || typeof message.content === 'string' || message.content
      ? null
      : { code: 'missing_field', at: ['content'], message: 'is required' },
  ),
  rule((message) => toolFields(message)),
);
export type ChatMessage = v.InferOutput<typeof ChatMessage>;

export const TextFormat = object({ type: v.literal('text') });
export const JsonObjectFormat = object({
  type: v.literal('json_object'),
  schema: v.nullish(
    v.pipe(jsonObject, v.description('JSON Schema of the answer, as in json_schema; some clients send it here.')),
  ),
});
/**
 * Fields of the response format `json_schema` besides `type`: nested in `json_schema` in Chat Completions, beside
 * `type` in Responses.
 */
export const jsonSchemaMembers = {
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/)),
  description: v.nullish(v.string()),
  schema: v.pipe(
    jsonObject,
    v.description('JSON Schema 2020-12. The answer always obeys it, with or without `strict`.'),
  ),
  strict: v.nullish(v.boolean()),
};
export const JsonSchemaFormat = object({
  type: v.literal('json_schema'),
  json_schema: object(jsonSchemaMembers),
});

export const ChatResponseFormat = variant('type', [TextFormat, JsonObjectFormat, JsonSchemaFormat]);

const penalty = v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2)));
const stopText = v.pipe(v.string(), v.minLength(1), v.maxLength(1024));

export const ChatCompletionRequest = v.pipe(
  object({
    model: v.nullish(v.pipe(v.string(), v.minLength(1), v.description('Id of the model. Default: the active model.'))),
    messages: v.pipe(v.array(ChatMessage), v.minLength(1), v.maxLength(4096)),
    max_completion_tokens: v.pipe(
      sampling.tokenCount,
      v.description(
        "Limit of output tokens. Default: the server's --chat-max-tokens, which is 1024 unless changed. The model's context length limits it too.",
      ),
    ),
    max_tokens: v.pipe(sampling.tokenCount, v.description('Deprecated alias of max_completion_tokens.')),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    seed: v.nullish(
      v.pipe(v.number(), v.integer(), v.minValue(Number.MIN_SAFE_INTEGER), v.maxValue(Number.MAX_SAFE_INTEGER)),
    ),
    stop: v.nullish(v.union([stopText, v.pipe(v.array(stopText), v.maxLength(16))])),
    stream: v.nullish(v.boolean()),
    stream_options: v.nullish(
      object({
        include_usage: v.nullish(
          v.pipe(
            v.boolean(),
            v.description('Whether the usage is in an event of its own, without choices, at the end. Default: false.'),
          ),
        ),
      }),
    ),
    response_format: v.nullish(ChatResponseFormat),
    presence_penalty: penalty,
    frequency_penalty: penalty,
    logprobs: v.nullish(v.boolean()),
    top_logprobs: sampling.topLogprobs,
    cache_salt: cacheSalt,
    n: v.nullish(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        rule((n) =>
          n === 1 ? null : { code: 'unsupported_parameter', message: 'must be 1: send a request for each answer' },
        ),
        v.metadata({ maximum: 1 }),
      ),
    ),
    user: v.nullish(v.string()),
    tools: v.nullish(chatTools),
    tool_choice: v.nullish(ChatToolChoice),
    parallel_tool_calls: v.nullish(
      v.pipe(
        v.boolean(),
        v.description('Whether an answer may have several tool calls, if the model supports that. Default: true.'),
      ),
    ),
    functions: noFunctions,
    function_call: noFunctionCall,
    ...otherConstraints,
    logit_bias: unsupported(isEmpty, 'is not supported: remove it'),
    modalities: unsupported(
      (value) => Array.isArray(value) && value.every((one) => one === 'text'),
      'must contain only text',
    ),
    audio: unsupported(() => false, 'is not supported: answers are text'),
  }),
  aliases('max_completion_tokens', 'max_tokens'),
  rule((request) =>
    typeof request.top_logprobs === 'number' && request.logprobs !== true
      ? { code: 'invalid_value', at: ['top_logprobs'], message: 'needs logprobs: true' }
      : null,
  ),
  rule(({ tools, tool_choice }) =>
    toolUseFields(
      {
        names: (tools ?? []).map((tool) => tool.function.name),
        choice: typeof tool_choice === 'object' ? tool_choice?.function : tool_choice,
      },
      ['tool_choice', 'function', 'name'],
    ),
  ),
  rule((request) => answeredCalls(request)),
);
export type ChatCompletionRequest = v.InferOutput<typeof ChatCompletionRequest>;
