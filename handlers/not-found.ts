import type { Hono } from 'hono';
import { AssayError } from '../lib/errors.ts';
import { nearestName } from '../lib/nearest-name.ts';
import type { AppContext, AppEnv } from './context.ts';
import { errorResponse } from './error-response.ts';

/**
 * Returns the handler of requests to paths that the app does not have. It answers `route_not_found` and suggests a
 * similar path.
 */
export function notFound(app: Hono<AppEnv>): (c: AppContext) => Response {
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
