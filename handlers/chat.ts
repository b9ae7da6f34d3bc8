import { type CompletionHead, completion, completionChunks, endedEarly } from '../lib/chat/completion.ts';
import { chatRequest } from '../lib/chat/request.ts';
import type { ChatRequest } from '../lib/contract/chat.ts';
import { checkedChat } from '../lib/contract/internal.ts';
import type { ChatCompletionChunk } from '../lib/schema/chat-completion.ts';
import type { ChatCompletionRequest } from '../lib/schema/chat-request.ts';
import { SSE_DONE, sseData } from '../lib/sse.ts';
import type { AppContext, Services } from './context.ts';
import { eventStream } from './event-stream.ts';
import { startChat } from './started-chat.ts';

/** Handles `POST /v1/chat/completions`: answers with one JSON body or, if `stream` is true, with a stream of events. */
export function chatCompletions(services: Services) {
  return async (c: AppContext, sent: ChatCompletionRequest): Promise<Response> => {
    const { model, created, events, leaving } = await startChat(c, services, chatRequest(sent));
    const head: CompletionHead = { id: `chatcmpl-${c.get('requestId')}`, created, model };
    if (!sent.stream) return c.json(await completion(head, events));
    const chunks = completionChunks(head, events, sent.stream_options?.include_usage === true);
    return eventStream(c, services, chunkTexts(chunks), leaving);
  };
}

/**
 * Handles a chat that an edge sends as it is to a box of the same version: streams the backend's own events
 * (`ChatEvent`).
 */
export function internalChat(services: Services) {
  return async (c: AppContext, sent: ChatRequest): Promise<Response> => {
    const { model, events, leaving } = await startChat(c, services, checkedChat(sent));
    const texts = async function* () {
      yield sseData({ type: 'start', model });
      for await (const event of events) {
        yield sseData(event);
        if (event.type === 'finish') return;
      }
      throw endedEarly();
    };
    return eventStream(c, services, texts(), leaving);
  };
}

async function* chunkTexts(chunks: AsyncIterable<ChatCompletionChunk>): AsyncGenerator<string> {
  for await (const chunk of chunks) yield sseData(chunk);
  yield SSE_DONE;
}
