import { SSE_COMMENT, sseData } from '../lib/sse.ts';
import type { AppContext, Services } from './context.ts';
import { errorBody } from './error-response.ts';
import { logged } from './request-log.ts';

/**
 * A response that sends each text as it comes; a comment after each silence, which also finds out whether anyone is still
 * there. An error becomes one last event (open-points.md, part B, "Stream"). The next text is pulled only when the connection
 * took the last, so a slow reader slows the source and nothing piles up. `leaving` is aborted when the reader goes away.
 */
export function eventStream(
  c: AppContext,
  services: Services,
  texts: AsyncIterable<string>,
  leaving: AbortController,
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
        const came = await Promise.race([next, idle]);
        if (came === 'idle') return controller.enqueue(encoder.encode(SSE_COMMENT));
        next = undefined;
        if (came.done) controller.close();
        else controller.enqueue(encoder.encode(came.value));
      } catch (error) {
        if (leaving.signal.aborted) return;
        logged(c, services, 'stream_failed', error);
        controller.enqueue(encoder.encode(sseData(errorBody(error, c.get('api')))));
        controller.close();
      } finally {
        waited.abort();
      }
    },
    cancel() {
      logged(c, services, 'caller_left');
      leaving.abort();
      next?.catch(() => {});
      void source.return?.();
    },
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' },
  });
}
