import type { ChatRequest, ToolUse } from '../../../lib/backend.ts';
import { message } from './message-wire.ts';

/**
 * Returns the JSON text of the body for an upstream's `POST /v1/chat/completions`. Always requests a stream, even if
 * the caller did not: the edge then sees chunks and metrics as they arrive.
 */
export function chatBody(request: ChatRequest): string {
  const { model, messages, maxTokens, temperature, topP, seed, stop, topLogprobs } = request;
  return JSON.stringify({
    model,
    messages: messages.map(message),
    max_completion_tokens: maxTokens,
    temperature,
    top_p: topP,
    seed,
    stop: stop.length > 0 ? stop : undefined,
    presence_penalty: request.presencePenalty || undefined,
    frequency_penalty: request.frequencyPenalty || undefined,
    ...(topLogprobs === undefined ? {} : { logprobs: true, top_logprobs: topLogprobs }),
    response_format: format(request.format),
    cache_salt: request.cacheSalt,
    ...(request.tools ? toolFields(request.tools) : {}),
    ...(request.reasoning ? reasoningFields(request.reasoning) : {}),
    continue_final_message: request.continues,
    stream: true,
    stream_options: { include_usage: true },
  });
}

function reasoningFields({ enabled, effort }: NonNullable<ChatRequest['reasoning']>): object {
  return effort === undefined ? { enable_thinking: enabled } : { reasoning_effort: effort };
}

function toolFields({ tools, choice, parallel }: ToolUse): object {
  return {
    tools: tools.map((tool) => ({ type: 'function', function: tool })),
    tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice },
    parallel_tool_calls: parallel,
  };
}

function format(format: ChatRequest['format']): object | undefined {
  if (format.type === 'text') return undefined;
  const { shape } = format;
  if (shape.kind !== 'schema') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name: 'answer', schema: shape.schema } };
}
