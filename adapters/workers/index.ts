import type { Hono } from 'hono';
import type { AppEnv } from '../../handlers/context.ts';
import { errorResponse } from '../../handlers/error-response.ts';
import { AssayError } from '../../lib/errors.ts';
import { createEdge } from './edge.ts';
import type { Env } from './env.ts';
import { logError } from './log.ts';

export type { Env } from './env.ts';
export { QuotaObject } from './keys/quota-object.ts';
export { FleetObject } from './upstreams/fleet-object.ts';

let edge: { env: Env; app: Hono<AppEnv> } | undefined;

/** The Worker. */
export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    try {
      if (edge?.env !== env) edge = { env, app: createEdge(env) };
    } catch (error) {
      logError(error instanceof Error ? error.message : String(error));
      const message = 'The edge is not configured. Its log says what to fix (wrangler tail).';
      return errorResponse(new AssayError('internal_error', message), 'models');
    }
    return edge.app.fetch(request, env);
  },
};
