import type { Hono } from 'hono';
import type { ErrorFormat } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { AppEnv, AppHandler, AppMiddleware } from './context.ts';
import { errorResponse } from './error-response.ts';

export type Method = 'GET' | 'POST' | 'DELETE';
type Mount = (method: Method, paths: readonly string[], handler: AppHandler) => void;

/**
 * Describes how one method of a path is handled: by the middleware `before`, such as the check of a key, and then by
 * the handler.
 */
interface Route {
  method: Method;
  before: readonly AppMiddleware[];
  handler: AppHandler;
}

/**
 * Returns a function that mounts a handler at one or more paths, behind the middleware `before`. Errors on these paths
 * have the format `api`.
 */
export function routesOf(app: Hono<AppEnv>, api: ErrorFormat, ...before: AppMiddleware[]): Mount {
  return (method, paths, handler) => {
    for (const path of paths) mountPath(app, api, path, [{ method, before, handler }]);
  };
}

/** Mounts the given methods of a path. Any other method is answered with status 405 and an `Allow` header. */
export function mountPath(app: Hono<AppEnv>, api: ErrorFormat, path: string, routes: readonly Route[]): void {
  app.use(path, (c, next) => {
    c.set('api', api);
    return next();
  });
  for (const { method, before, handler } of routes) app.on(method, [path], ...before, handler);
  app.all(path, (c) => {
    const methods = routes.map(({ method }) => method);
    return methodNotAllowed(c.req.method, methods, api);
  });
}

/** Returns the response to a method that a path does not have, with an `Allow` header. */
export function methodNotAllowed(method: string, allowed: readonly Method[], api: ErrorFormat): Response {
  const error = new AssayError(
    'method_not_allowed',
    `${method} is not allowed here; this path takes ${allowed.join(' and ')}.`,
  );
  const response = errorResponse(error, api);
  response.headers.set('allow', allowed.map((one) => (one === 'GET' ? 'GET, HEAD' : one)).join(', '));
  return response;
}
