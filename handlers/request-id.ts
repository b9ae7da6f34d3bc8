import type { Clock } from '../lib/clock.ts';
import type { AppMiddleware, RequestLog } from './context.ts';

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives every response an `x-request-id`, the caller's own where it is well formed, and logs the request once. */
export function requestId(newRequestId: () => string, clock: Clock, log: RequestLog): AppMiddleware {
  return async (c, next) => {
    const sent = c.req.header('x-request-id');
    const id = sent !== undefined && ACCEPTABLE.test(sent) ? sent : newRequestId();
    const begin = clock.now();
    c.set('requestId', id);
    await next();
    c.res.headers.set('x-request-id', id);
    const key = c.get('key')?.name;
    log({
      event: 'request',
      requestId: id,
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      ms: clock.now() - begin,
      ...(key === undefined ? {} : { key }),
      ...(c.error === undefined ? {} : { error: c.error }),
    });
  };
}
