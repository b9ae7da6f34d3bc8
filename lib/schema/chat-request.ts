import * as v from 'valibot';
import { aliases, rule } from '../validation/rules.ts';
import { AudioPart, ImagePart, ImageUrl, InputAudio, TextPart } from './message.ts';

// Requests of POST /v1/chat/completions. Unknown fields are ignored, as clients send extras, and null counts as not
// sent, as OpenAI's own clients write it (docs/interface.md, M-14).

/**
 * Returns the schema of a field that would change the meaning of the request: it is refused unless its value has no
 * effect. It is not in the contract, so that generated clients do not offer it.
 */
function unsupported(saysNothing: (value: unknown) => boolean, instead: string) {
  return v.nullish(
    v.pipe(
      v.unknown(),
      rule((value) => (saysNothing(value) ? null : { code: 'unsupported_parameter', message: instead })),
      v.metadata({ 'x-unsupported': true }),
    ),
  );
}

const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
const noTools = unsupported(isEmpty, 'is not supported: ask for JSON with response_format');
const noToolChoice = unsupported(
  (value) => value === 'none' || value === 'auto',
  'is not supported: there are no tools',
);

export const ChatTextPart = v.object(TextPart.entries);
export const ChatImageUrlPart = v.object({ type: v.literal('image_url'), image_url: v.object(ImageUrl.entries) });
export const ChatImagePart = v.object(ImagePart.entries);
export const ChatAudioPart = v.object(AudioPart.entries);
export const ChatInputAudioPart = v.object({
  type: v.literal('input_audio'),
  input_audio: v.object(InputAudio.entries),
});

export const ChatContentPart = v.variant('type', [
  ChatTextPart,
  ChatImageUrlPart,
  ChatImagePart,
  ChatAudioPart,
  ChatInputAudioPart,
]);

export const ChatMessage = v.pipe(
  v.object({
    role: v.pipe(v.picklist(['system', 'developer', 'user', 'assistant']), v.description('developer means system.')),
    content: v.nullish(v.union([v.string(), v.pipe(v.array(ChatContentPart), v.minLength(1), v.maxLength(1024))])),
    name: v.nullish(v.pipe(v.string(), v.maxLength(256))),
    tool_calls: noTools,
  }),
  rule((message) =>
    message.role === 'assistant' || typeof message.content === 'string' || message.content
      ? null
      : { code: 'missing_field', at: ['content'], message: 'is required' },
  ),
);
export type ChatMessage = v.InferOutput<typeof ChatMessage>;

export const TextFormat = v.object({ type: v.literal('text') });
export const JsonObjectFormat = v.object({ type: v.literal('json_object') });
export const JsonSchemaFormat = v.object({
  type: v.literal('json_schema'),
  json_schema: v.object({
    name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/)),
    description: v.nullish(v.string()),
    schema: v.pipe(
      v.custom<{ readonly [key: string]: unknown }>(
        (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
      ),
      v.metadata({ type: 'object', additionalProperties: true }),
      v.description('JSON Schema 2020-12. The answer always obeys it, whatever `strict` says.'),
    ),
    strict: v.nullish(v.boolean()),
  }),
});

export const ChatResponseFormat = v.variant('type', [TextFormat, JsonObjectFormat, JsonSchemaFormat]);

const penalty = v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2)));
const tokenCount = v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_048_576)));
const stopText = v.pipe(v.string(), v.minLength(1), v.maxLength(1024));

export const ChatCompletionRequest = v.pipe(
  v.object({
    model: v.nullish(v.pipe(v.string(), v.minLength(1), v.description('Default: the active model.'))),
    messages: v.pipe(v.array(ChatMessage), v.minLength(1), v.maxLength(4096)),
    max_completion_tokens: v.pipe(
      tokenCount,
      v.description(
        "Default: the server's --chat-max-tokens, 1024 unless changed. Never more than what is left of the model's context.",
      ),
    ),
    max_tokens: v.pipe(tokenCount, v.description('Earlier name of max_completion_tokens.')),
    temperature: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
    top_p: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
    seed: v.nullish(
      v.pipe(v.number(), v.integer(), v.minValue(Number.MIN_SAFE_INTEGER), v.maxValue(Number.MAX_SAFE_INTEGER)),
    ),
    stop: v.nullish(v.union([stopText, v.pipe(v.array(stopText), v.maxLength(16))])),
    stream: v.nullish(v.boolean()),
    stream_options: v.nullish(v.object({ include_usage: v.nullish(v.boolean()) })),
    response_format: v.nullish(ChatResponseFormat),
    presence_penalty: penalty,
    frequency_penalty: penalty,
    logprobs: v.nullish(v.boolean()),
    top_logprobs: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(20))),
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
    tools: noTools,
    functions: noTools,
    tool_choice: noToolChoice,
    function_call: noToolChoice,
    logit_bias: unsupported(isEmpty, 'is not supported'),
    modalities: unsupported(
      (value) => Array.isArray(value) && value.every((one) => one === 'text'),
      'must hold text alone',
    ),
    audio: unsupported(() => false, 'is not supported: answers are text'),
  }),
  aliases('max_completion_tokens', 'max_tokens'),
  rule((request) =>
    typeof request.top_logprobs === 'number' && request.logprobs !== true
      ? { code: 'invalid_value', at: ['top_logprobs'], message: 'needs logprobs: true' }
      : null,
  ),
);
export type ChatCompletionRequest = v.InferOutput<typeof ChatCompletionRequest>;
