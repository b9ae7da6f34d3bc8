import type { ChatEvent } from '../lib/backend.ts';
import { type CompletionHead, completion, completionChunks } from '../lib/chat/completion.ts';
import { chatRequest } from '../lib/chat/request.ts';
import { AssayError } from '../lib/errors.ts';
import { ChatCompletionRequest } from '../lib/schema/chat-request.ts';
import { SSE_DONE, sseData } from '../lib/sse.ts';
import { checkRight } from './auth.ts';
import { readRequest } from './body.ts';
import { callOf } from './call.ts';
import type { AppHandler, Services } from './context.ts';
import { eventStream } from './event-stream.ts';

/** Handles `POST /v1/chat/completions`, blocking or as a stream. */
export function chatCompletions(services: Services): AppHandler {
  return async (c) => {
    const sent = await readRequest(c, ChatCompletionRequest);
    const request = chatRequest(sent);
    if (request.model !== undefined) checkRight(c, request.model);
    const leaving = new AbortController();
    const signal = AbortSignal.any([c.req.raw.signal, leaving.signal]);
    const events = services.backend.chat(request, callOf(c, services.quota, signal))[Symbol.asyncIterator]();
    const model = await started(events);
    try {
      // If the request names no model, this event is the first to name it.
      checkRight(c, model);
    } catch (error) {
      leaving.abort();
      throw error;
    }
    const created = Math.floor(services.clock.now() / 1000);
    const head: CompletionHead = { id: `chatcmpl-${c.get('requestId')}`, created, model };
    const rest = { [Symbol.asyncIterator]: () => events };
    if (!sent.stream) return c.json(await completion(head, rest));
    return eventStream(c, services, chunkTexts(head, rest), leaving);
  };
}

/** Waits until the request has a slot in the queue: until then an error still becomes a status. */
async function started(events: AsyncIterator<ChatEvent>): Promise<string> {
  const { value } = await events.next();
  if (value?.type === 'start') return value.model;
  throw new AssayError('internal_error', 'The backend answered out of order. The request id finds it in the log.');
}

async function* chunkTexts(head: CompletionHead, events: AsyncIterable<ChatEvent>): AsyncGenerator<string> {
  for await (const chunk of completionChunks(head, events)) yield sseData(chunk);
  yield SSE_DONE;
}
