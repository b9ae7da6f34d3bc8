import type { Hono } from 'hono';
import * as v from 'valibot';
import { checkRight, requireAdmin, requireKey } from '../../handlers/auth.ts';
import type { AppContext, AppEnv, AppHandler, AppMiddleware } from '../../handlers/context.ts';
import { methodNotAllowed, mountPath } from '../../handlers/mount.ts';
import { AssayError } from '../../lib/errors.ts';
import { readBytes } from '../../lib/json/body.ts';
import type { KeyStore } from '../../lib/keys.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { Method } from '../../lib/openapi/operation.ts';
import { fetchUpstream, type UpstreamClientDeps, type UpstreamRequest } from './forward/upstream-client.ts';
import { UpstreamFault } from './forward/upstream-fault.ts';
import type { Fleet } from './upstreams/fleet.ts';
import type { Upstream } from './upstreams/upstream.ts';

export interface UpstreamRoutesDeps {
  fleet: Fleet;
  keys: KeyStore;
  client: UpstreamClientDeps;
}

// The paths of an upstream that an operator may call are the whole model server except chat (docs/interface.md, E-3):
// `GET` and `POST` by method, and any path that begins with `MODEL`, by GET and DELETE.
const GET = new Set(['/', '/health', '/currentmodel', '/v1/models', '/models']);
const POST = new Set([
  '/load',
  '/v1/models/load',
  '/unload',
  '/delete',
  '/v1/models/delete',
  '/download',
  '/v1/models/download',
]);
const MODEL = '/v1/models/';

/** Largest body in bytes; a body is `{"model":"…"}` with a few more fields. */
const MOST_BYTES = 64 * 1024;
/**
 * Timeout in milliseconds until an answer must begin. Cloudflare cuts off a caller after 100 s of silence. After a
 * timeout, the upstream continues its work.
 */
const DEADLINE_MS = 90_000;

/**
 * Adds `/boxes/<name>`, the base address of one upstream's model server, and `GET /boxes`, which lists the upstreams.
 * Both need a key with the admin scope. The upstream validates the request. Its status and body are returned unchanged;
 * events of a stream are forwarded as they arrive.
 */
export function upstreamRoutes(app: Hono<AppEnv>, deps: UpstreamRoutesDeps): void {
  const known = requireKey(deps.keys);
  const administers = requireAdmin(deps.keys);
  app.use('/boxes/*', useModelsApi);
  const list: AppHandler = (c) => {
    const data = deps.fleet.status().map(({ upstream, state, active }) => {
      const { name, models, weight } = upstream;
      return {
        name,
        models,
        weight,
        breaker: state,
        active_model: active === undefined ? 'unknown' : (active[0] ?? 'none'),
        ...(active && active.length > 1 ? { loaded_models: active } : {}),
      };
    });
    return c.json({ object: 'list', data });
  };
  mountPath(app, 'models', '/boxes', [{ method: 'GET', before: [known, administers], handler: list }]);
  app.all('/boxes/:name/*', known, administers, (c) => forward(c, deps));
  app.all('/boxes/:name', known, administers, (c) => forward(c, deps));
}

/** Makes errors of the routes below `/boxes` take the form of the models API. */
const useModelsApi: AppMiddleware = (c, next) => {
  c.set('api', 'models');
  return next();
};

async function forward(c: AppContext, { fleet, client }: UpstreamRoutesDeps): Promise<Response> {
  const name = c.req.param('name');
  const known = fleet.status().find((one) => one.upstream.name === name);
  if (!known) throw new AssayError('route_not_found', 'There is no box with this name. GET /boxes lists them.');
  const { upstream, active } = known;
  const path = c.req.path.slice(`/boxes/${name}`.length) || '/';
  const methods = methodsOf(path);
  if (methods.length === 0) throw new AssayError('route_not_found', NOT_CALLABLE);
  // A HEAD is a GET whose body Hono drops.
  const method = methods.find((one) => one === (c.req.method === 'HEAD' ? 'GET' : c.req.method));
  if (!method) return methodNotAllowed(c.req.method, methods, 'models');
  const body = method === 'POST' ? new TextDecoder().decode(await readBytes(c.req.raw.body, MOST_BYTES)) : undefined;
  checkModel(c, path, body, active);
  const response = await send(c, client, upstream, {
    method,
    path: upstreamPath(path),
    ...(body === undefined ? {} : { body }),
  });
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const kept of ['content-type', 'retry-after', 'allow']) {
    const value = response.headers.get(kept);
    if (value !== null) headers.set(kept, value);
  }
  return new Response(response.body, { status: response.status, headers });
}

/**
 * Throws `model_not_allowed` if the caller's key may not use the model that the operation names, or the one that
 * `/unload` would unload. The box cannot tell: it only sees the edge's own key.
 */
function checkModel(
  c: AppContext,
  path: string,
  body: string | undefined,
  active: readonly string[] | undefined,
): void {
  if (path.startsWith(MODEL) && !POST.has(path)) {
    checkRight(c, decode(path.slice(MODEL.length)));
    return;
  }
  const sent = v.safeParse(v.pipe(v.string(), v.parseJson(), v.object({ model: v.string() })), body);
  if (sent.success) checkRight(c, sent.output.model);
  // Without a model, the box unloads the one that was loaded last, and refuses all else. The edge may not know it yet.
  else if (path === '/unload') for (const model of active ?? ['*']) checkRight(c, model);
}

/** Returns the methods of an upstream's path that operators may call; none for any other path. */
function methodsOf(path: string): readonly Method[] {
  if (GET.has(path)) return ['GET'];
  if (POST.has(path)) return ['POST'];
  return path.startsWith(MODEL) ? ['GET', 'DELETE'] : [];
}

/**
 * Returns the path to call on the upstream, with a percent-encoded model id decoded. Throws `invalid_model_id` if what
 * follows `MODEL` is not a model id.
 */
function upstreamPath(path: string): string {
  if (GET.has(path) || POST.has(path)) return path;
  return MODEL + parseModelId(decode(path.slice(MODEL.length)));
}

const NOT_CALLABLE =
  'This path of a box cannot be called here. Allowed are load, unload, delete, download, health and the models.';

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function send(
  c: AppContext,
  client: UpstreamClientDeps,
  upstream: Upstream,
  request: Pick<UpstreamRequest, 'method' | 'path' | 'body'>,
): Promise<Response> {
  const headers: Record<string, string> = {};
  for (const passed of ['accept', 'content-type']) {
    const value = c.req.header(passed);
    if (value !== undefined) headers[passed] = value;
  }
  const trace = c.get('trace');
  const call = {
    requestId: c.get('requestId'),
    ...(trace ? { trace } : {}),
    signal: c.req.raw.signal,
    deadlineMs: DEADLINE_MS,
  };
  try {
    return await fetchUpstream(upstream, { ...request, ...call, headers }, client);
  } catch (error) {
    throw error instanceof UpstreamFault ? error.error : error;
  }
}
