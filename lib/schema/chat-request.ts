import * as v from 'valibot';
import { object, variant } from '../validation/objects.ts';
import { aliases, type Finding, isEmpty, rule, unsupported } from '../validation/rules.ts';
import { answeredCalls, toolFields, toolUseFields } from './chat-tool-rules.ts';
import { ChatToolChoice, chatToolCalls, chatTools } from './chat-tools.ts';
import { jsonObject } from './json-object.ts';
import { KeepAlive } from './keep-alive.ts';
import { AudioPart, ImagePart, ImageUrl, InputAudio, TextPart } from './message.ts';
import { contradictingReasoning, reasoningFields } from './reasoning-fields.ts';
import * as sampling from './sampling-fields.ts';
import { cacheSalt } from './sampling-fields.ts';
import { described, nonEmpty, nullish } from './values.ts';

// Requests of POST /v1/chat/completions. Unknown fields are ignored, because clients send extra ones. Null counts as
// not sent, because OpenAI's own clients send it for absent fields (docs/model-api.md, M-14).

const noFunctions = unsupported(isEmpty, 'is not supported: send tools');
const noFunctionCall = unsupported(
  (value) => value === 'none' || value === 'auto',
  'is not supported: send tools and tool_choice',
);

const noConstraint = (instead: string) =>
  unsupported(
    (value) => value === '' || value === 'text' || isEmpty(value) || isText(value),
    `is not supported: send ${instead} with a JSON Schema, which can have pattern and enum`,
  );
const isText = (value: unknown) => {
  const form = typeof value === 'object' && value !== null ? value : {};
  return 'type' in form ? form.type === 'text' && Object.keys(form).length === 1 : false;
};
/**
 * Returns the fields in which other servers and APIs (vLLM, SGLang, llama.cpp, Ollama, Anthropic) take the form of the
 * answer. None of them may be ignored.
 *
 * @param instead the field that has the form here
 */
export const otherForms = (instead: string) => {
  const refused = noConstraint(instead);
  return Object.fromEntries(OTHER_FORMS.map((name) => [name, refused])) as {
    [name in (typeof OTHER_FORMS)[number]]: typeof refused;
  };
};
const OTHER_FORMS = [
  'format',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'guided_decoding',
  'structured_outputs',
  'grammar',
  'ebnf',
  'regex',
  'json_schema',
  'response_schema',
  'output_format',
  'output_schema',
] as const;

const hasForm = (value: unknown) =>
  typeof value === 'object' && value !== null && 'format' in value && !isText(value.format);

export const ChatTextPart = object(TextPart.entries);
export const ChatImageUrlPart = object({
  type: v.literal('image_url'),
  image_url: object({ ...ImageUrl.entries, detail: v.nullish(ImageUrl.entries.detail.wrapped) }),
});
export const ChatImagePart = object(ImagePart.entries);
export const ChatAudioPart = object(AudioPart.entries);
export const ChatInputAudioPart = object({
  type: v.literal('input_audio'),
  input_audio: object(InputAudio.entries),
});

/** Parts of earlier assistant messages, as clients send them back. Reasoning is not shown to the model again. */
export const ChatRefusalPart = object({ type: v.literal('refusal'), refusal: v.string() });
export const ChatThinkingPart = object({ type: v.literal('thinking') });
export const ChatReasoningPart = object({ type: v.literal('reasoning') });
const ASSISTANT_PARTS: ReadonlySet<string> = new Set(['refusal', 'thinking', 'reasoning']);

export const ChatContentPart = variant('type', [
  ChatTextPart,
  ChatImageUrlPart,
  ChatImagePart,
  ChatAudioPart,
  ChatInputAudioPart,
  ChatRefusalPart,
  ChatThinkingPart,
  ChatReasoningPart,
]);

export const ChatMessage = v.pipe(
  object({
    role: described(
      v.picklist(['system', 'developer', 'user', 'assistant', 'tool']),
      'developer is treated as system. tool is the output of a tool call.',
    ),
    content: v.nullish(v.union([v.string(), v.pipe(v.array(ChatContentPart), v.minLength(1), v.maxLength(1024))])),
    name: v.nullish(v.pipe(v.string(), v.maxLength(256))),
    prefix: nullish(v.boolean(), 'For the last message, of the assistant: as continue_final_message.'),
    partial: nullish(v.boolean(), 'Another name of prefix.'),
    tool_calls: nullish(chatToolCalls, 'For an assistant message: the tool calls that it made.'),
    tool_call_id: nullish(
      v.pipe(v.string(), v.maxLength(256)),
      'For a tool message: the id of the call that it answers.',
    ),
  }),
  rule((message) =>
    message.role === 'assistant' || typeof message.content === 'string' || message.content
      ? null
      : { code: 'missing_field', at: ['content'], message: 'is required' },
  ),
  rule((message) => toolFields(message)),
  rule(({ role, content }) => {
    const parts = typeof content === 'string' ? [] : (content ?? []);
    const at = role === 'assistant' ? -1 : parts.findIndex(({ type }) => ASSISTANT_PARTS.has(type));
    return at < 0 ? null : { code: 'invalid_value', at: ['content', at, 'type'], message: 'is for the role assistant' };
  }),
);
export type ChatMessage = v.InferOutput<typeof ChatMessage>;

export const TextFormat = object({ type: v.literal('text') });
export const JsonObjectFormat = object({
  type: v.literal('json_object'),
  schema: nullish(jsonObject, 'JSON Schema of the answer, as in json_schema; some clients send it here.'),
});
/**
 * Fields of the response format `json_schema` besides `type`: nested in `json_schema` in Chat Completions, beside
 * `type` in Responses.
 */
export const jsonSchemaMembers = {
  name: nullish(v.pipe(v.string(), v.maxLength(256)), 'Has no effect.'),
  description: v.nullish(v.string()),
  schema: described(jsonObject, 'JSON Schema 2020-12. The answer always obeys it, with or without `strict`.'),
  strict: v.nullish(v.boolean()),
};
export const JsonSchemaFormat = object({
  type: v.literal('json_schema'),
  json_schema: object(jsonSchemaMembers),
});

export const ChatResponseFormat = variant('type', [TextFormat, JsonObjectFormat, JsonSchemaFormat]);

const penalty = v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2)));
const stopText = v.pipe(v.string(), v.minLength(1), v.maxLength(1024));

const maxTokens =
  "Limit of output tokens. Default: the server's --chat-max-tokens, which is 1024 unless changed. The model's context length limits it too.";
const one = { code: 'unsupported_parameter', message: 'must be 1: send a request for each answer' } as const;

/** Fields that text completions share with chats. */
const sharedFields = {
  model: nullish(nonEmpty, 'Id of the model. Default: the active model.'),
  temperature: sampling.temperature,
  top_p: sampling.topP,
  seed: nullish(
    v.pipe(v.number(), v.integer(), v.minValue(-(2 ** 64)), v.maxValue(2 ** 64)),
    'A whole number of up to 64 bits. Beyond 2^53, seeds that a double cannot tell apart are equal.',
  ),
  stop: v.nullish(v.union([stopText, v.pipe(v.array(stopText), v.maxLength(16))])),
  stream: v.nullish(v.boolean()),
  stream_options: v.nullish(
    object({
      include_usage: nullish(
        v.boolean(),
        'Whether the usage is in an event of its own, without choices, at the end. Default: false.',
      ),
    }),
  ),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  cache_salt: cacheSalt,
  keep_alive: v.nullish(KeepAlive),
  n: v.nullish(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      rule((n) => (n === 1 ? null : one)),
      v.metadata({ maximum: 1 }),
    ),
  ),
  user: v.nullish(v.string()),
  logit_bias: unsupported(isEmpty, 'is not supported: remove it'),
};

/** Request of `POST /v1/completions`: the prompt is sent as one user message (docs/model-api.md, M-30). */
export const CompletionRequest = object({
  ...sharedFields,
  prompt: described(
    v.union([v.string(), v.pipe(v.array(v.string()), v.length(1))]),
    'The text. It is shown to the model as the message of a user, by its chat template.',
  ),
  max_tokens: described(sampling.tokenCount, maxTokens),
  suffix: unsupported((value) => value === '', 'is not supported: remove it'),
  echo: unsupported((value) => value === false, 'is not supported: remove it'),
  best_of: unsupported((value) => value === 1, 'must be 1'),
  logprobs: unsupported((value) => value === 0, 'is not supported: use /v1/chat/completions'),
  response_format: unsupported(() => false, 'is not supported: use /v1/chat/completions'),
  ...otherForms('response_format to /v1/chat/completions'),
});
export type CompletionRequest = v.InferOutput<typeof CompletionRequest>;

export const ChatCompletionRequest = v.pipe(
  object({
    ...sharedFields,
    messages: v.pipe(v.array(ChatMessage), v.minLength(1), v.maxLength(4096)),
    max_completion_tokens: described(sampling.tokenCount, maxTokens),
    max_tokens: described(sampling.tokenCount, 'Deprecated alias of max_completion_tokens.'),
    response_format: v.nullish(ChatResponseFormat),
    logprobs: v.nullish(v.boolean()),
    top_logprobs: sampling.topLogprobs,
    tools: v.nullish(chatTools),
    tool_choice: v.nullish(ChatToolChoice),
    parallel_tool_calls: nullish(
      v.boolean(),
      'Whether an answer may have several tool calls, if the model supports that. Default: true.',
    ),
    functions: noFunctions,
    function_call: noFunctionCall,
    ...otherForms('response_format'),
    text: unsupported((value) => !hasForm(value), 'is of the Responses API: send response_format'),
    ...reasoningFields,
    continue_final_message: nullish(
      v.boolean(),
      'Whether the answer continues the last message, which is an assistant message. Default: false.',
    ),
    add_generation_prompt: v.nullish(v.boolean()),
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
        choice: chatChoice(tool_choice),
      },
      ['tool_choice', 'function', 'name'],
    ),
  ),
  rule((request) => contradictingReasoning(request)),
  rule((request) => continuation(request)),
  rule((request) => answeredCalls(request)),
);
/** Returns a tool choice without the nesting of Chat Completions. */
export function chatChoice(
  sent: v.InferOutput<typeof ChatToolChoice> | null | undefined,
): 'none' | 'auto' | 'required' | { name: string } | { names: string[]; mode: 'auto' | 'required' } | null | undefined {
  if (!sent || typeof sent === 'string') return sent;
  if (sent.type === 'function') return sent.function;
  const { mode, tools } = sent.allowed_tools;
  return { mode, names: tools.map((tool) => tool.function.name) };
}

/** Holds the fields of a request that say whether its last message is to be continued. */
interface Continuing {
  continue_final_message?: boolean | null | undefined;
  messages: readonly ChatMessage[];
}

/**
 * Returns the path of the field that asks to continue the last message: vLLM's, Mistral's and DeepSeek's (`prefix`), or
 * Moonshot's and Qwen's (`partial`); null if none does.
 */
export function continuedBy({ continue_final_message, messages }: Continuing): (string | number)[] | null {
  if (continue_final_message) return ['continue_final_message'];
  const last = messages.at(-1);
  const name = last?.prefix ? 'prefix' : last?.partial ? 'partial' : null;
  return name && ['messages', messages.length - 1, name];
}

/** Returns the issue of a request to continue its last message; null if there is none. */
function continuation(
  request: Continuing & {
    add_generation_prompt?: boolean | null | undefined;
    response_format?: { type: string } | null | undefined;
    tool_choice?: unknown;
  },
): Finding | null {
  const { add_generation_prompt: begins, messages } = request;
  const path = continuedBy(request);
  if (!path) {
    return begins === false
      ? {
          code: 'unsupported_parameter',
          at: ['add_generation_prompt'],
          message: 'must not be false without continue_final_message',
        }
      : null;
  }
  if (begins === true) return { code: 'invalid_value', at: path, message: 'contradicts add_generation_prompt' };
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || last.tool_calls?.length || !last.content?.length) {
    return {
      code: 'invalid_value',
      at: path,
      message: 'needs a last message of the assistant with text, without calls',
    };
  }
  const form = (request.response_format?.type ?? 'text') !== 'text';
  const forced = request.tool_choice && request.tool_choice !== 'none' && request.tool_choice !== 'auto';
  if (!form && !forced) return null;
  const message = 'cannot be used with a response_format or a forced tool call, which the whole answer must obey';
  return { code: 'unsupported_parameter', at: path, message };
}

export type ChatCompletionRequest = v.InferOutput<typeof ChatCompletionRequest>;
