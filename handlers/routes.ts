import type { Hono } from 'hono';
import type { ErrorFormat } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { AppEnv, AppHandler, AppMiddleware } from './context.ts';
import { errorResponse } from './error-response.ts';

type Method = 'GET' | 'POST' | 'DELETE';
type Mount = (method: Method, paths: readonly string[], handler: AppHandler) => void;

/**
 * Mounts routes of one interface or format, each behind `before`; any other method on their paths is 405 with `Allow`.
 */
export function routesOf(app: Hono<AppEnv>, api: ErrorFormat, ...before: AppMiddleware[]): Mount {
  return (method, paths, handler) => {
    for (const path of paths) {
      app.use(path, (c, next) => {
        c.set('api', api);
        return next();
      });
      app.on(method, [path], ...before, handler);
      app.all(path, (c) => {
        const error = new AssayError(
          'method_not_allowed',
          `${c.req.method} is not allowed here; this path takes ${method}.`,
        );
        const response = errorResponse(error, api);
        response.headers.set('allow', method === 'GET' ? 'GET, HEAD' : method);
        return response;
      });
    }
  };
}
