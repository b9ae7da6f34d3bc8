import type { AppMiddleware, Services } from './context.ts';
import { logged } from './request-log.ts';

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives every response an `x-request-id` (docs/interface.md, D-21) and logs the request once. */
export function requestId(services: Services): AppMiddleware {
  return async (c, next) => {
    const sent = c.req.header('x-request-id');
    const id = sent !== undefined && ACCEPTABLE.test(sent) ? sent : services.newRequestId();
    c.set('requestId', id);
    c.set('begin', services.clock.now());
    await next();
    c.res.headers.set('x-request-id', id);
    logged(c, services, c.req.raw.signal.aborted ? 'caller_left' : 'request', c.error);
  };
}
