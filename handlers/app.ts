import { Hono } from 'hono';
import { getPath } from 'hono/utils/url';
import { at } from '../lib/at.ts';
import { systemClock } from '../lib/clock.ts';
import { APIS, type ErrorFormat } from '../lib/error-status.ts';
import { BodyBudget } from '../lib/json/body-budget.ts';
import { randomSpanId } from '../lib/trace-context.ts';
import { requireAdmin, requireKey, takeQuota } from './auth.ts';
import { limitBodies } from './body.ts';
import type { AppContext, AppDeps, AppEnv, Services } from './context.ts';
import { errorResponse } from './error-response.ts';
import { guard } from './guard.ts';
import { mountPath } from './mount.ts';
import { notFound } from './not-found.ts';
import { page } from './pages.ts';
import { requestId } from './request-id.ts';
import { INTERNAL_ROUTES, type MountedRoute, ROUTES } from './routes.ts';

/**
 * Creates the app that serves the decision service, the model server, or both (`deps.apis`). Its `fetch` takes a
 * `Request` and returns a `Response`, so it runs on any host: `createApp({ backend, host, keys }).fetch(request)`.
 */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  const app = new Hono<AppEnv>({ getPath: pathOf });
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
  app.use(limitBodies(bodies, deps.decoders));

  for (const [path, file] of deps.pages ?? []) {
    mountPath(app, 'models', path, [{ method: 'GET', before: [], handler: page(path, file) }]);
  }
  const key = requireKey(deps.keys);
  const counted = takeQuota(deps.quota);
  const before = ({ key: needed, admin, counts }: MountedRoute) => {
    if (needed === 'never' || (needed === 'off loopback' && !deps.keyForModels)) return [];
    return [key, ...(admin ? [requireAdmin] : []), ...(counts ? [counted] : [])];
  };
  const mounted = new Set<ErrorFormat>(deps.apis ?? APIS);
  const routes: readonly MountedRoute[] = [
    ...ROUTES.filter(({ own, api }) => own || mounted.has(api === 'models' ? 'models' : 'decisions')),
    // Only a box has a host, and an edge stands before boxes alone.
    ...(deps.host ? INTERNAL_ROUTES : []),
  ];
  // Hono takes the first pattern that matches, and `/v1/models/{model_id}` also matches `/v1/models/load`.
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
