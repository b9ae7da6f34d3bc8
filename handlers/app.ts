import { Hono } from 'hono';
import { TrieRouter } from 'hono/router/trie-router';
import { getPath } from 'hono/utils/url';
import { at } from '../lib/at.ts';
import { systemClock } from '../lib/clock.ts';
import { APIS, type ErrorFormat } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import { BodyBudget } from '../lib/json/body-budget.ts';
import { nearestName } from '../lib/nearest-name.ts';
import { newTrace, randomSpanId, traceContext } from '../lib/trace-context.ts';
import { requireAdmin, requireKey, takeQuota } from './auth.ts';
import { limitBodies } from './body.ts';
import type { AppContext, AppDeps, AppEnv, AppMiddleware, Services } from './context.ts';
import { errorResponse } from './error-response.ts';
import { guard } from './guard.ts';
import { mountPath } from './mount.ts';
import { page } from './pages.ts';
import { leftEvent, logged } from './request-log.ts';
import { INTERNAL_ROUTES, type MountedRoute, ROUTES } from './routes.ts';

/**
 * Creates the app that serves the decision service, the model server, or both (`deps.apis`). Its `fetch` takes a
 * `Request` and returns a `Response`, so it runs on any host: `createApp({ backend, host, keys }).fetch(request)`.
 */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  // Which of two patterns that match comes first must not depend on the other routes, as with the router Hono chooses.
  const app = new Hono<AppEnv>({ getPath: pathOf, router: new TrieRouter() });
  const bodies = new BodyBudget(deps.bodyBytes ?? 256 * 1024 * 1024);
  const services: Services = {
    aliases: new Set(),
    clock: systemClock,
    newRequestId: () => crypto.randomUUID(),
    newSpanId: randomSpanId,
    beginTraces: false,
    log: () => {},
    heartbeatMs: 1500,
    ...deps,
    bodies,
  };

  // Middleware applies to all routes, because it is registered before them.
  app.use(requestId(services));
  app.onError(failed);
  app.notFound(notFound(app));
  if (deps.guard) app.use(guard(deps.guard));
  app.use(limitBodies(bodies, deps));
  const { checker } = deps;
  if (checker) {
    app.use((c, next) => {
      c.set('checker', checker);
      return next();
    });
  }

  for (const [path, file] of deps.pages ?? []) {
    mountPath(app, 'models', path, [{ method: 'GET', before: [], handler: page(path, file) }]);
  }
  const key = requireKey(deps.keys);
  const administers = requireAdmin(deps.keys);
  const counted = takeQuota(deps.quota);
  const before = ({ key: needed, admin, counts }: MountedRoute) => {
    if (needed === 'never' || (needed === 'off loopback' && !deps.keyForModels)) return [];
    return [key, ...(admin ? [administers] : []), ...(counts ? [counted] : [])];
  };
  const mounted = new Set<ErrorFormat>(deps.apis ?? APIS);
  const routes: readonly MountedRoute[] = [
    ...ROUTES.filter(({ own, api }) => own || mounted.has(api === 'models' ? 'models' : 'decisions')),
    // Only a box has a host, and an edge stands before boxes alone.
    ...(deps.host ? INTERNAL_ROUTES : []),
  ];
  // The router takes the first pattern that matches, and `/v1/models/{model_id}` also matches `/v1/models/load`.
  const paths = [...Map.groupBy(routes, ({ path }) => path)].sort(
    ([one], [other]) => parameters(one) - parameters(other),
  );
  for (const [path, rows] of paths) {
    const methods = rows.flatMap((row) => {
      const handler = row.handler(services);
      return handler ? [{ method: row.method, before: before(row), handler }] : [];
    });
    if (methods.length > 0) mountPath(app, at(rows, 0).api, path, methods);
  }
  return app;
}

function parameters(path: string): number {
  return path.split('{').length;
}

function failed(error: Error, c: AppContext): Response {
  // The caller has disconnected and receives nothing; the status is for the log. 499 is nginx's "client closed
  // request", which Hono's types do not include.
  if (c.req.raw.signal.aborted) return c.body(null, 499 as 500);
  return errorResponse(error, c.get('api') ?? 'models');
}

/**
 * Returns the path of a request. Base URLs are pasted with and without a slash at their end, so repeated slashes count
 * as one, and one at the end of a path of the interface as none.
 */
function pathOf(request: Request): string {
  const path = getPath(request);
  if (request.method === 'GET' || request.method === 'HEAD' || !/\/\/|.\/$/.test(path)) return path;
  return path.replaceAll(/\/{2,}/g, '/').replace(/(.)\/$/, '$1');
}

/**
 * Returns the handler of requests to paths that the app does not have. It answers `route_not_found` and suggests a
 * similar path.
 */
function notFound(app: Hono<AppEnv>): (c: AppContext) => Response {
  return (c) => {
    const meant = meantPath(c.req.path, pathsOf(app));
    const suggestion = meant === undefined ? '' : ` Did you mean ${meant}?`;
    const message = `There is nothing at this path.${suggestion} GET /openapi.json lists all routes.`;
    return errorResponse(new AssayError('route_not_found', message), c.get('api') ?? 'models');
  };
}

/** Returns the paths of all routes that have no parameters. Middleware is registered for patterns with `*`. */
function pathsOf(app: Hono<AppEnv>): string[] {
  return [...new Set(app.routes.map(({ path }) => path))].filter((path) => path !== '/' && !/[*:]/.test(path));
}

/**
 * Returns the known path that a request probably meant: one that differs by a prefix, as with a base URL that lacks
 * `/v1` or has it twice, or by a typo, or that ends alike; undefined if there is none.
 */
function meantPath(path: string, known: readonly string[]): string | undefined {
  const end = path.slice(path.lastIndexOf('/'));
  return (
    known.find((one) => one.endsWith(path) || path.endsWith(one)) ??
    nearestName(path, known) ??
    (end === '/' ? undefined : known.find((one) => one.endsWith(end)))
  );
}

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * Returns middleware that gives every response an `x-request-id` (docs/interface.md, D-21), also under the name that
 * TypeSafe's clients read, continues the caller's trace or begins one if `beginTraces` is set (D-35), and logs the
 * request once.
 */
function requestId(services: Services): AppMiddleware {
  return async (c, next) => {
    const sent = c.req.header('x-request-id');
    const id = sent !== undefined && ACCEPTABLE.test(sent) ? sent : services.newRequestId();
    c.set('requestId', id);
    c.set('begin', services.clock.now());
    const { newSpanId, beginTraces } = services;
    const trace = traceContext(c.req.raw.headers, newSpanId) ?? (beginTraces ? newTrace(newSpanId) : null);
    if (trace) c.set('trace', trace);
    await next();
    // Hono answers HEAD as GET and drops the body, whose source, such as a file, would stay open.
    if (c.req.method === 'HEAD') await c.res.body?.cancel();
    c.res.headers.set('x-request-id', id);
    c.res.headers.set('x-typesafe-request-id', id);
    logged(c, services, c.req.raw.signal.aborted ? leftEvent(services) : 'request', c.error);
  };
}
