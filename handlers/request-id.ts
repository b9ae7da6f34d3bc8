import { newTrace, traceContext } from '../lib/trace-context.ts';
import type { AppMiddleware, Services } from './context.ts';
import { leftEvent, logged } from './request-log.ts';

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * Returns middleware that gives every response an `x-request-id` (docs/interface.md, D-21), also under the name that
 * TypeSafe's clients read, continues the caller's trace or begins one if `beginTraces` is set (D-35), and logs the
 * request once.
 */
export function requestId(services: Services): AppMiddleware {
  return async (c, next) => {
    const sent = c.req.header('x-request-id');
    const id = sent !== undefined && ACCEPTABLE.test(sent) ? sent : services.newRequestId();
    c.set('requestId', id);
    c.set('begin', services.clock.now());
    const { newSpanId, beginTraces } = services;
    const trace = traceContext(c.req.raw.headers, newSpanId) ?? (beginTraces ? newTrace(newSpanId) : null);
    if (trace) c.set('trace', trace);
    await next();
    c.res.headers.set('x-request-id', id);
    c.res.headers.set('x-typesafe-request-id', id);
    logged(c, services, c.req.raw.signal.aborted ? leftEvent(services) : 'request', c.error);
  };
}
