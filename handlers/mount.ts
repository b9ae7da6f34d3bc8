import type { Hono } from 'hono';
import type { ErrorFormat } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { Method } from '../lib/openapi/operation.ts';
import type { AppEnv, AppHandler, AppMiddleware } from './context.ts';
import { errorResponse } from './error-response.ts';

/**
 * Describes how one method of a path is handled: by the middleware `before`, such as the check of a key, and then by
 * the handler.
 */
export interface MountedMethod {
  method: Method;
  before: readonly AppMiddleware[];
  handler: AppHandler;
}

/**
 * Mounts the given methods of a path of the contract, such as `/v1/models/{model_id}`. Any other method is answered
 * with status 405 and an `Allow` header. Errors on this path have the format `api`.
 */
export function mountPath(app: Hono<AppEnv>, api: ErrorFormat, path: string, methods: readonly MountedMethod[]): void {
  // A parameter may contain slashes, as the ids of models do.
  const pattern = path.replace(/\{(\w+)\}/g, ':$1{.+}');
  app.use(pattern, (c, next) => {
    c.set('api', api);
    c.set('route', path);
    return next();
  });
  for (const { method, before, handler } of methods) app.on(method, [pattern], ...before, handler);
  const allowed = methods.map(({ method }) => method);
  app.all(pattern, (c) => methodNotAllowed(c.req.method, allowed, api));
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
