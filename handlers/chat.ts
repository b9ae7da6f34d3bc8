import { type CompletionHead, completion, completionChunks, endedEarly } from '../lib/chat/completion.ts';
import { chatRequest } from '../lib/chat/request.ts';
import type { ChatRequest } from '../lib/contract/chat.ts';
import { checkedChat } from '../lib/contract/internal.ts';
import type { ChatCompletion, ChatCompletionChunk, Completion } from '../lib/schema/chat-completion.ts';
import type { ChatCompletionRequest, CompletionRequest } from '../lib/schema/chat-request.ts';
import { compiled } from './compiled.ts';
import type { AppContext, Services } from './context.ts';
import { eventStream, SSE_DONE, sseData } from './event-stream.ts';
import { startChat } from './started-chat.ts';

/** Handles `POST /v1/chat/completions`: answers with one JSON body or, if `stream` is true, with a stream of events. */
export function chatCompletions(services: Services) {
  return (c: AppContext, sent: ChatCompletionRequest) =>
    answerChat(c, services, { sent, prefix: 'chatcmpl', format: (one) => one });
}

/** Handles `POST /v1/completions`: the prompt becomes a chat of one message, and its answer a text. */
export function completions(services: Services) {
  return (c: AppContext, sent: CompletionRequest) =>
    answerChat(c, services, { sent: textCompletionRequest(sent), prefix: 'cmpl', format: textCompletion });
}

interface Asked {
  sent: ChatCompletionRequest;
  /** Begin of the answer's id. */
  prefix: string;
  /** Writes an answer or a chunk in the format of the route; null: nothing is sent. */
  format(answer: ChatCompletion | ChatCompletionChunk): ChatCompletion | ChatCompletionChunk | Completion | null;
}

async function answerChat(c: AppContext, services: Services, { sent, prefix, format }: Asked): Promise<Response> {
  const asked = await compiled(c, c.get('text'), () => chatRequest(sent));
  const { model, created, events, leaving } = await startChat(c, services, asked, sent.keep_alive);
  const head: CompletionHead = { id: `${prefix}-${c.get('requestId')}`, created, model };
  if (!sent.stream) return c.json(format(await completion(head, events)));
  const chunks = completionChunks(head, events, sent.stream_options?.include_usage === true);
  const texts = async function* () {
    for await (const chunk of chunks) {
      const formatted = format(chunk);
      if (formatted) yield sseData(formatted);
    }
    yield SSE_DONE;
  };
  return eventStream(c, services, texts(), leaving);
}

/**
 * Handles a chat that an edge sends as it is to a box of the same version: streams the backend's own events
 * (`ChatEvent`).
 */
export function internalChat(services: Services) {
  return async (c: AppContext, sent: ChatRequest): Promise<Response> => {
    const { model, events, leaving } = await startChat(
      c,
      services,
      await compiled(c, c.get('text'), () => checkedChat(sent)),
    );
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

/*
 * Text completions, the older form of OpenAI's chats. Some gateways call no other path. The prompt is the message of a
 * user, because models of today answer well only in their chat template.
 */

/** Returns the chat that a text completion asks for. */
function textCompletionRequest({ prompt, ...rest }: CompletionRequest): ChatCompletionRequest {
  // The schema lets these two through only without an effect, and not in the types of a chat.
  const { logprobs: _, response_format: __, ...sent } = rest;
  return { ...sent, messages: [{ role: 'user', content: typeof prompt === 'string' ? prompt : prompt[0] }] };
}

/** Returns a chat's answer, or a chunk of it, as a text completion; null for a chunk without text or an end. */
function textCompletion(answer: ChatCompletion | ChatCompletionChunk): Completion | null {
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
