import type { ChatCompletion, ChatCompletionChunk, Completion } from '../schema/chat-completion.ts';
import type { ChatCompletionRequest, CompletionRequest } from '../schema/chat-request.ts';

/*
 * Text completions, the older form of OpenAI's chats. Some gateways call no other path. The prompt is the message of a
 * user, because models of today answer well only in their chat template.
 */

/** Returns the chat that a text completion asks for. */
export function textCompletionRequest({ prompt, ...rest }: CompletionRequest): ChatCompletionRequest {
  // The schema lets these two through only without an effect, and not in the types of a chat.
  const { logprobs: _, response_format: __, ...sent } = rest;
  return { ...sent, messages: [{ role: 'user', content: typeof prompt === 'string' ? prompt : prompt[0] }] };
}

/** Returns a chat's answer, or a chunk of it, as a text completion; null for a chunk without text or an end. */
export function textCompletion(answer: ChatCompletion | ChatCompletionChunk): Completion | null {
  const choices = answer.choices.flatMap((choice) => {
    const text = ('message' in choice ? choice.message : choice.delta).content ?? '';
    const { finish_reason: reason, stop_reason } = choice;
    if (text === '' && reason === null) return [];
    // Without tools, no answer ends with calls.
    const finish_reason = reason === 'tool_calls' ? 'stop' : reason;
    return [{ index: 0 as const, text, finish_reason, ...(stop_reason ? { stop_reason } : {}), logprobs: null }];
  });
  if (answer.choices.length > 0 && choices.length === 0) return null;
  return { ...answer, object: 'text_completion', choices };
}
