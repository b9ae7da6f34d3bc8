import type { ChatRequest } from '../backend.ts';
import { checkAnswerSchema } from '../decision/check-answer-schema.ts';
import { toChatMessages } from '../messages.ts';
import type { ChatCompletionRequest } from '../schema/chat-request.ts';
import type { Message } from '../schema/message.ts';

/** Converts a valid request to the form of the backends. Throws as `checkAnswerSchema` for a `json_schema`. */
export function chatRequest(sent: ChatCompletionRequest): ChatRequest {
  return {
    ...given('model', sent.model),
    messages: toChatMessages(sent.messages.map(message)),
    ...given('maxTokens', sent.max_completion_tokens ?? sent.max_tokens),
    ...given('temperature', sent.temperature),
    ...given('topP', sent.top_p),
    ...given('seed', sent.seed),
    stop: typeof sent.stop === 'string' ? [sent.stop] : (sent.stop ?? []),
    presencePenalty: sent.presence_penalty ?? 0,
    frequencyPenalty: sent.frequency_penalty ?? 0,
    ...given('topLogprobs', sent.logprobs ? (sent.top_logprobs ?? 0) : null),
    format: format(sent.response_format),
  };
}

/** Returns the member as an object to spread; empty if it is undefined. */
function given<K extends string, V>(name: K, value: V | null | undefined): { [key in K]?: V } {
  // TypeScript infers an index signature for a computed name.
  return value === null || value === undefined ? {} : ({ [name]: value } as { [key in K]?: V });
}

function message({ role, content, name }: ChatCompletionRequest['messages'][number]): Message {
  return { role, content: content ?? '', ...given('name', name) };
}

function format(sent: ChatCompletionRequest['response_format']): ChatRequest['format'] {
  switch (sent?.type) {
    case 'json_object':
      return { type: 'json', shape: { kind: 'any' } };
    case 'json_schema': {
      const { schema } = sent.json_schema;
      const param = 'response_format.json_schema.schema';
      return { type: 'json', shape: checkAnswerSchema({ schema, param, jsonSchemaOnly: true }) };
    }
    default:
      return { type: 'text' };
  }
}
