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
    format: chatFormat(responseFormat(sent.response_format), 'response_format.json_schema.schema'),
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

type Sent = ChatCompletionRequest['response_format'];
type Format = { type: 'text' | 'json_object' } | { type: 'json_schema'; schema: { readonly [key: string]: unknown } };

/** Returns the format with the members of a `json_schema` beside its type, as the Responses API has them. */
function responseFormat(sent: Sent): Format | null {
  return sent?.type === 'json_schema' ? { type: 'json_schema', ...sent.json_schema } : (sent ?? null);
}

/** Converts a format to the form of the backends. `param` is the path of its schema. Throws as `checkAnswerSchema`. */
export function chatFormat(sent: Format | null | undefined, param: string): ChatRequest['format'] {
  switch (sent?.type) {
    case 'json_object':
      return { type: 'json', shape: { kind: 'any' } };
    case 'json_schema':
      return { type: 'json', shape: checkAnswerSchema({ schema: sent.schema, param, jsonSchemaOnly: true }) };
    default:
      return { type: 'text' };
  }
}
