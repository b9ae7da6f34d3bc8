import { Hono } from 'hono';
import { systemClock } from '../lib/clock.ts';
import { FACES } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { AppDeps, AppEnv } from './context.ts';
import { errorResponse } from './error-response.ts';
import { guard } from './guard.ts';
import { requestId } from './request-id.ts';

/**
 * Both interfaces, or either alone, as one `fetch` for any host: `createApp({ backend, host, keys }).fetch(request)`. Here
 * routes meet handlers; what stands above the routes holds for all of them.
 */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  const faces = new Set(deps.faces ?? FACES);
  const { clock = systemClock, newRequestId = () => crypto.randomUUID(), log = () => {} } = deps;

  app.use(requestId(newRequestId, clock, log));
  app.onError((error, c) => errorResponse(error, c.get('face') ?? 'models'));
  app.notFound((c) => {
    const message = 'There is nothing at this path. GET /openapi.json lists all routes.';
    return errorResponse(new AssayError('route_not_found', message), c.get('face') ?? 'models');
  });
  if (deps.guard) app.use(guard(deps.guard));

  if (faces.has('decisions')) {
    // const decisions = routesOf(app, 'decisions', requireKey(deps.keys));
  }

  if (faces.has('models')) {
    // const open = routesOf(app, 'models');
    // const models = routesOf(app, 'models', ...(deps.keyForModels ? [requireKey(deps.keys)] : []));
  }
  return app;
}
