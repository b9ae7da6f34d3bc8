import type { ChatCompletionChunk } from '../../../lib/schema/chat-completion.ts';
import { ApiError } from '../api.ts';
import { readEvents } from '../read-events.ts';

export interface ChatDelta {
  reasoning: string;
  content: string;
}

export interface ChatEnd {
  finishReason: string | null;
  tokensPerSecond: number | null;
}

/**
 * Reads a streamed chat completion: calls `onDelta` with each new part, and returns how the answer ended. Throws
 * `ApiError` if the stream reports an error or ends early, and an `AbortError` if the request was aborted.
 */
export async function readChat(response: Response, onDelta: (delta: ChatDelta) => void): Promise<ChatEnd> {
  const end: ChatEnd = { finishReason: null, tokensPerSecond: null };
  let done = false;
  await readEvents(response, (data) => {
    if (data === '[DONE]') {
      done = true;
      return;
    }
    const { choices, metrics }: ChatCompletionChunk = JSON.parse(data);
    const choice = choices[0];
    const { reasoning_content: reasoning = '', content = '' } = choice?.delta ?? {};
    if (reasoning || content) onDelta({ reasoning, content });
    if (choice?.finish_reason) end.finishReason = choice.finish_reason;
    if (metrics) end.tokensPerSecond = metrics.tokens_per_second;
  });
  if (!done) throw new ApiError(0, 'stream_ended', 'The stream ended before the answer did. Ask again.');
  return end;
}
