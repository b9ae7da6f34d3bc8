import type { AppContext, Services } from './context.ts';
import { errorBody } from './error-response.ts';
import { leftEvent, logged } from './request-log.ts';

/**
 * Returns a response that streams server-sent events as they arrive, and logs how the stream ends. After `heartbeatMs`
 * without an event it sends an SSE comment, which keeps the connection open and detects a reader that has disconnected.
 * An error becomes the last event (docs/model-api.md, M-17). The next event is pulled only when the connection has
 * accepted the previous one, so a slow reader slows the source and nothing is buffered.
 *
 * @param texts one whole formatted event each
 * @param leaving aborted by this function when the reader disconnects, to stop the source
 * @param failure formats the event that reports an error
 * @param form how events are written; by default as server-sent events
 */
export function eventStream(
  c: AppContext,
  services: Services,
  texts: AsyncIterable<string>,
  leaving: AbortController,
  failure: (error: unknown) => string = (error) => sseData(errorBody(error, c.get('api'))),
  { contentType, idle: comment }: StreamForm = EVENTS,
): Response {
  const encoder = new TextEncoder();
  const source = texts[Symbol.asyncIterator]();
  let next: Promise<IteratorResult<string>> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      next ??= source.next();
      const waited = new AbortController();
      const idle = services.clock.sleep(services.heartbeatMs, waited.signal).then(() => 'idle' as const);
      try {
        const came = await (comment === undefined ? next : Promise.race([next, idle]));
        if (came === 'idle') return controller.enqueue(encoder.encode(comment));
        next = undefined;
        if (came.done) {
          controller.close();
          logged(c, services, 'stream_ended');
        } else controller.enqueue(encoder.encode(came.value));
      } catch (error) {
        if (leaving.signal.aborted) return;
        logged(c, services, 'stream_failed', error);
        controller.enqueue(encoder.encode(failure(error)));
        controller.close();
      } finally {
        waited.abort();
      }
    },
    cancel() {
      logged(c, services, leftEvent(services));
      leaving.abort();
      next?.catch(() => {});
      endEarly(source);
    },
  });
  return c.body(body, 200, { 'content-type': contentType, 'cache-control': 'no-store' });
}

/** Formats a server-sent event without a name (HTML Living Standard, "Server-sent events"); `value` is sent as JSON. */
export function sseData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** Formats a server-sent event with a name; `value` is sent as JSON. */
export function sseEvent(name: string, value: unknown): string {
  return `event: ${name}\n${sseData(value)}`;
}

/** The last event of a stream of Chat Completions. */
export const SSE_DONE = 'data: [DONE]\n\n';

/**
 * An SSE comment, which clients ignore. It keeps an idle connection open, and detects a client that has disconnected.
 */
export const SSE_COMMENT = ': keep-alive\n\n';

/**
 * Ends a source of events that is not read any further, so that it frees its resources. Does not wait for it, and
 * ignores an error that it throws.
 */
export function endEarly(source: AsyncIterator<unknown>): void {
  // If the cleanup of a generator throws, `return` rejects. Nobody waits for that, and an unhandled rejection would end
  // the process.
  source.return?.().catch(() => {});
}

/** Describes how a stream writes its events: the content type, and what it sends while it waits for the next event. */
interface StreamForm {
  contentType: string;
  idle?: string;
}

const EVENTS: StreamForm = { contentType: 'text/event-stream; charset=utf-8', idle: SSE_COMMENT };
/** JSON values, one a line. */
export const LINES: StreamForm = { contentType: 'application/x-ndjson' };
