import type { ChatEvent, ChatRequest } from '../lib/backend.ts';
import { CONTEXT_HEADER, contextHash } from '../lib/prompt/affinity.ts';
import { checkRight, noteModel } from './auth.ts';
import { callOf } from './call.ts';
import type { AppContext, Services } from './context.ts';
import { endEarly } from './event-stream.ts';

/** Represents a chat that the backend has accepted and admitted to its queue. */
export interface StartedChat {
  model: string;
  /** Seconds since 1970-01-01 UTC. */
  created: number;
  /** The events after `start`. */
  events: AsyncIterable<ChatEvent>;
  /** Abort it to stop the chat when its reader disconnects. */
  leaving: AbortController;
}

/**
 * Checks that the key may use the model, sends the chat to the backend and waits for its event `start`, which means
 * that the chat is admitted. Throws every error up to that point, so that it can still be answered with its
 * HTTP status.
 */
export async function startChat(
  c: AppContext,
  services: Services,
  request: ChatRequest,
  keepAlive?: unknown,
): Promise<StartedChat> {
  const leaving = new AbortController();
  const call = callOf(c, services.quota, { signal: AbortSignal.any([c.req.raw.signal, leaving.signal]), keepAlive });
  const { model: wanted, ...unnamed } = request;
  const aliased = wanted !== undefined && services.aliases.has(wanted);
  // Without a model, the only loaded one is meant; otherwise only the event `start` names it.
  const [only, ...others] = services.host?.inMemory() ?? [];
  const meant = wanted === undefined || aliased ? others.length === 0 && only?.model : wanted;
  if (meant) checkRight(c, meant);
  const events = services.backend.chat(aliased ? unnamed : request, call)[Symbol.asyncIterator]();
  // The first event of a chat is `start` (lib/backend.ts).
  const { model } = (await events.next()).value as Extract<ChatEvent, { type: 'start' }>;
  try {
    // A request may omit the model; then only this event names it.
    noteModel(c, model);
  } catch (error) {
    leaving.abort();
    endEarly(events);
    throw error;
  }
  c.header(CONTEXT_HEADER, contextHash(request));
  const created = Math.floor(services.clock.now() / 1000);
  return { model, created, events: { [Symbol.asyncIterator]: () => events }, leaving };
}
