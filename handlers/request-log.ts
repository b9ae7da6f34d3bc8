import type { AppContext, RequestRecord, Services } from './context.ts';

/** Tells the log of a request. A log that fails is no fault of the request. */
export function logged(c: AppContext, { clock, log }: Services, event: RequestRecord['event'], error?: unknown): void {
  const key = c.get('key')?.name;
  try {
    log({
      event,
      requestId: c.get('requestId'),
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      ms: clock.now() - c.get('begin'),
      ...(key === undefined ? {} : { key }),
      ...(error === undefined ? {} : { error }),
    });
  } catch {
    // There is nowhere left to say it.
  }
}
