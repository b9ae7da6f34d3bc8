import * as v from 'valibot';
import { ChatToolCall, ChatToolCallDelta } from './chat-tools.ts';
import { Metrics } from './metrics.ts';
import { ModelIdText } from './model-list.ts';
import { FINISH_REASONS } from './task-response.ts';
import { count, described, optional } from './values.ts';

// Responses of POST /v1/chat/completions, in the shape of OpenAI's Chat Completions API, with `reasoning_content` and
// `metrics` (docs/model-api.md, M-15 and M-16).

export const ChatUsage = v.object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: v.optional(v.object({ cached_tokens: count })),
});
export type ChatUsage = v.InferOutput<typeof ChatUsage>;

const alternative = { token: v.string(), logprob: v.number(), bytes: v.nullable(v.array(v.number())) };

export const TokenAlternative = v.object(alternative);
export const TokenLogprob = v.object({ ...alternative, top_logprobs: v.array(TokenAlternative) });
export const ChatLogprobs = v.object({
  content: v.nullable(v.array(TokenLogprob)),
  refusal: v.nullable(v.array(TokenLogprob)),
});
export type ChatLogprobs = v.InferOutput<typeof ChatLogprobs>;

const head = { id: v.string(), created: count, model: ModelIdText };
const reasoning = optional(v.string(), "The model's reasoning, if it is a model that reasons.");

export const ChatAnswer = v.object({
  role: v.literal('assistant'),
  content: described(v.nullable(v.string()), 'The text of the answer; null if the answer has only tool calls.'),
  reasoning_content: reasoning,
  tool_calls: v.optional(v.array(ChatToolCall)),
});

export const ChatFinishReason = described(
  v.picklist([...FINISH_REASONS, 'tool_calls']),
  'stop: the answer is complete. tool_calls: it is complete and calls tools. length: the output limit cut it, ' +
    'possibly within the arguments of a tool call. content_filter: no answer; sending the same input again does not help.',
);

const stopReason = optional(
  v.literal('repetition'),
  'Present if the answer was cut because it only repeated itself, not by a limit of tokens.',
);

export const ChatChoice = v.object({
  index: v.literal(0),
  message: ChatAnswer,
  finish_reason: ChatFinishReason,
  stop_reason: stopReason,
  logprobs: v.nullable(ChatLogprobs),
});

/** Response of `POST /v1/chat/completions` without `stream`. */
export const ChatCompletion = v.object({
  ...head,
  object: v.literal('chat.completion'),
  choices: v.pipe(v.array(ChatChoice), v.length(1)),
  usage: ChatUsage,
  metrics: Metrics,
});
export type ChatCompletion = v.InferOutput<typeof ChatCompletion>;

export const ChatDelta = v.object({
  role: v.optional(v.literal('assistant')),
  content: v.optional(v.string()),
  reasoning_content: reasoning,
  tool_calls: v.optional(v.pipe(v.array(ChatToolCallDelta), v.length(1))),
});

export const ChatChunkChoice = v.object({
  index: v.literal(0),
  delta: ChatDelta,
  finish_reason: v.nullable(ChatFinishReason),
  stop_reason: stopReason,
  logprobs: v.nullable(ChatLogprobs),
});

/**
 * One event of a stream of `POST /v1/chat/completions`. The last event has a `finish_reason` that is not null, `usage`
 * and `metrics`; its delta is empty. With `stream_options.include_usage`, one more event follows, which has `usage` and
 * `metrics` instead, and no choices.
 */
export const ChatCompletionChunk = v.object({
  ...head,
  object: v.literal('chat.completion.chunk'),
  choices: described(v.pipe(v.array(ChatChunkChoice), v.maxLength(1)), 'One choice; none in the event with the usage.'),
  usage: described(
    v.nullish(ChatUsage),
    'In the last event. With stream_options.include_usage, it is null in all others.',
  ),
  metrics: v.optional(Metrics),
});
export type ChatCompletionChunk = v.InferOutput<typeof ChatCompletionChunk>;

/**
 * Response of `POST /v1/completions`, and one event of its stream. `usage` is in the last event; with
 * `stream_options.include_usage`, in one more event without choices.
 */
export const Completion = v.object({
  ...head,
  object: v.literal('text_completion'),
  choices: v.pipe(
    v.array(
      v.object({
        index: v.literal(0),
        text: v.string(),
        finish_reason: v.nullable(v.picklist(FINISH_REASONS)),
        stop_reason: stopReason,
        logprobs: v.null(),
      }),
    ),
    v.maxLength(1),
  ),
  usage: v.nullish(ChatUsage),
  metrics: v.optional(Metrics),
});
export type Completion = v.InferOutput<typeof Completion>;
