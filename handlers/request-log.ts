import type { AppContext, RequestRecord, Services } from './context.ts';

/** Logs an event of the request. If the log itself throws, the request is not affected. */
export function logged(c: AppContext, { clock, log }: Services, event: RequestRecord['event'], error?: unknown): void {
  const key = c.get('key')?.name;
  const route = c.get('route');
  const model = c.get('model');
  try {
    log({
      event,
      requestId: c.get('requestId'),
      method: c.req.method,
      path: c.req.path,
      ...(route === undefined ? {} : { route }),
      status: c.res.status,
      ms: clock.now() - c.get('begin'),
      ...(key === undefined ? {} : { key }),
      ...(model === undefined ? {} : { model }),
      ...(isStream(c.res) ? { stream: true } : {}),
      ...traceFields(c),
      ...(error === undefined ? {} : { error }),
    });
  } catch {
    // If the log fails, there is nowhere to report it.
  }
}

/**
 * Returns the event of a request whose connection was closed: the server itself closes those that are left when its
 * time to stop is over.
 */
export function leftEvent({ isStopping }: Services): RequestRecord['event'] {
  return isStopping?.() ? 'ended_by_shutdown' : 'caller_left';
}

function isStream({ headers }: Response): boolean {
  return /^(text\/event-stream|application\/x-ndjson)/.test(headers.get('content-type') ?? '');
}

function traceFields(c: AppContext): Pick<RequestRecord, 'traceId' | 'spanId' | 'parentId' | 'traceFlags'> {
  const trace = c.get('trace');
  if (!trace) return {};
  const { traceId, spanId, parentId, flags } = trace;
  return { traceId, spanId, traceFlags: flags, ...(parentId === undefined ? {} : { parentId }) };
}
