import { AssayError } from '../lib/errors.ts';
import { CONTEXT_HEADER } from '../lib/prompt/affinity.ts';
import { CUT_TASKS_HEADER } from '../lib/tasks/cut-tasks.ts';
import type { AppContext, AppMiddleware, GuardSettings } from './context.ts';

const LOOPBACK = /^(localhost|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])(:\d{1,5})?$/i;

/**
 * Returns middleware that protects a server on a user's machine from foreign web pages (docs/model-api.md, M-18). With
 * `loopbackOnly`, the Host must be a loopback name; otherwise a page could reach the server by DNS rebinding. The
 * Origin must be absent, the server's own, or one of `allowOrigins`. Any other request throws `forbidden_origin`.
 * Answers the CORS preflights of allowed origins.
 */
export function guard(settings: GuardSettings): AppMiddleware {
  const allowed = new Set(settings.allowOrigins);
  return async (c, next) => {
    const url = URL.parse(c.req.url);
    const host = c.req.header('host') ?? url?.host ?? '';
    if (!url)
      throw new AssayError(
        'forbidden_origin',
        `${host} is not a host name. Send a Host header such as 127.0.0.1:8080.`,
      );
    if (settings.loopbackOnly && !(LOOPBACK.test(host) && LOOPBACK.test(url.host))) {
      throw new AssayError(
        'forbidden_origin',
        'This server answers only requests to localhost, 127.0.0.1 or [::1]. Use one of these names, or start it with --host to serve another address.',
      );
    }
    const origin = c.req.header('origin');
    // A page may load an image or a script from here without an Origin. Links to the server's pages stay possible.
    const site = c.req.header('sec-fetch-site');
    if (origin === undefined && site === 'cross-site' && c.req.header('sec-fetch-mode') !== 'navigate') {
      throw new AssayError('forbidden_origin', 'Pages of other sites may not load anything from this server.');
    }
    if (origin === undefined || origin === url.origin) return next();
    if (!allowed.has(origin)) {
      throw new AssayError(
        'forbidden_origin',
        'Pages of this origin may not call this server. Start it with --allow-origin <origin> to let them.',
      );
    }
    if (isPreflight(c)) return preflight(c, origin);
    await next();
    c.res.headers.set('access-control-allow-origin', origin);
    c.res.headers.set(
      'access-control-expose-headers',
      `x-request-id, retry-after, ${CUT_TASKS_HEADER}, ${CONTEXT_HEADER}`,
    );
    c.res.headers.append('vary', 'origin');
  };
}

function isPreflight(c: AppContext): boolean {
  return c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
}

function preflight(c: AppContext, origin: string): Response {
  return c.body(null, 204, {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'GET, POST, DELETE',
    'access-control-allow-headers': c.req.header('access-control-request-headers') ?? 'authorization, content-type',
    'access-control-max-age': '600',
    vary: 'origin, access-control-request-headers',
  });
}
