import type { ChatEvent, ChatRequest } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import { checkRight } from './auth.ts';
import { callOf } from './call.ts';
import type { AppContext, Services } from './context.ts';

/** Holds a chat that the backend has accepted: it has a slot in the queue. */
export interface StartedChat {
  model: string;
  /** Seconds since 1970-01-01 UTC. */
  created: number;
  /** The events after `start`. */
  events: AsyncIterable<ChatEvent>;
  /** Aborting it aborts the chat, when its reader leaves. */
  leaving: AbortController;
}

/**
 * Checks the key's right to the model, sends a chat to the backend, and waits until it has a slot in the queue. An
 * error before that can still become a status.
 */
export async function startChat(c: AppContext, services: Services, request: ChatRequest): Promise<StartedChat> {
  if (request.model !== undefined) checkRight(c, request.model);
  const leaving = new AbortController();
  const signal = AbortSignal.any([c.req.raw.signal, leaving.signal]);
  const events = services.backend.chat(request, callOf(c, services.quota, signal))[Symbol.asyncIterator]();
  const { value } = await events.next();
  if (value?.type !== 'start') {
    throw new AssayError('internal_error', 'The backend answered out of order. Search the log for the request id.');
  }
  try {
    // If the request names no model, this event is the first to name it.
    checkRight(c, value.model);
  } catch (error) {
    leaving.abort();
    throw error;
  }
  const created = Math.floor(services.clock.now() / 1000);
  return { model: value.model, created, events: { [Symbol.asyncIterator]: () => events }, leaving };
}
