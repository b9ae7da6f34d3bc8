import type { AppContext, RequestRecord, Services } from './context.ts';

/** Calls the log. A log that throws does not fail the request. */
export function logged(c: AppContext, { clock, log }: Services, event: RequestRecord['event'], error?: unknown): void {
  const key = c.get('key')?.name;
  const { traceId, spanId, parentId } = c.get('trace') ?? {};
  try {
    log({
      event,
      requestId: c.get('requestId'),
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      ms: clock.now() - c.get('begin'),
      ...(key === undefined ? {} : { key }),
      ...(traceId && spanId && parentId ? { traceId, spanId, parentId } : {}),
      ...(error === undefined ? {} : { error }),
    });
  } catch {
    // There is nowhere left to report it.
  }
}
