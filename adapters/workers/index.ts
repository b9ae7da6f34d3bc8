import type { Hono } from 'hono';
import type { AppEnv } from '../../handlers/context.ts';
import { errorResponse } from '../../handlers/error-response.ts';
import { AssayError, messageOf } from '../../lib/errors.ts';
import type { DurableObjectState } from './bindings.ts';
import { FleetObject as EdgeFleet, QuotaObject as Quota } from './durable-objects.ts';
import { createEdge } from './edge.ts';
import type { Env, QuotaCalls } from './env.ts';
import { logError } from './log.ts';
import type { FleetCalls } from './upstreams/report.ts';

export type { Env } from './env.ts';

/**
 * Represents a Durable Object class that wrangler can bind. It hides the base class, whose types exist only in the
 * Workers runtime.
 */
type DurableObjectClass<Calls> = new (state: DurableObjectState, env: Env) => Calls;

/** Durable Object class that holds the token bucket of one key. */
export const QuotaObject: DurableObjectClass<QuotaCalls> = Quota;
/** Durable Object class that keeps the state of all upstreams (boxes). */
export const FleetObject: DurableObjectClass<FleetCalls> = EdgeFleet;

let edge: { env: Env; app: Hono<AppEnv> } | undefined;

/**
 * Handles the requests of the Worker. The first request creates the edge; if that fails, each request tries it again.
 */
export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    try {
      if (edge?.env !== env) edge = { env, app: createEdge(env) };
    } catch (error) {
      logError(messageOf(error));
      const message = 'The edge is not configured. Its log says what to fix (wrangler tail).';
      return errorResponse(new AssayError('internal_error', message), 'models');
    }
    return edge.app.fetch(request, env);
  },
};
