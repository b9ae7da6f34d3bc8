import type { Hono } from 'hono';
import { requireAdmin, requireKey } from '../../handlers/auth.ts';
import type { AppContext, AppEnv, AppMiddleware } from '../../handlers/context.ts';
import { AssayError } from '../../lib/errors.ts';
import { readBytes } from '../../lib/json/body.ts';
import type { KeyStore } from '../../lib/keys.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { Box } from './boxes/box.ts';
import type { Fleet } from './boxes/fleet.ts';
import { type BoxClientDeps, type BoxRequest, fetchBox } from './forward/box-client.ts';
import { BoxFault } from './forward/box-fault.ts';

export interface BoxRoutesDeps {
  fleet: Fleet;
  keys: KeyStore;
  client: BoxClientDeps;
}

/** What an operator may call of a box: everything of the model server but chat (model-server.md, "Endpoints"). */
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

/** `{"model":"…"}` and a few numbers. */
const MOST_BYTES = 64 * 1024;
/** Until an answer begins: a Worker's caller is cut off after 100 s of silence. What the box was told to do goes on. */
const DEADLINE_MS = 90_000;

/**
 * `/boxes/<name>` is the base address of one box's model server, for keys with the admin scope; `GET /boxes` lists the boxes.
 * The box checks what it is sent and its answer comes back as it is, event streams as they come.
 */
export function boxRoutes(app: Hono<AppEnv>, deps: BoxRoutesDeps): void {
  const known = requireKey(deps.keys);
  app.use('/boxes/*', onModelsFace);
  app.use('/boxes', onModelsFace);
  app.get('/boxes', known, requireAdmin, (c) => {
    const data = deps.fleet.status().map(({ box, state, active }) => {
      const { name, models, weight } = box;
      return {
        name,
        models,
        weight,
        breaker: state,
        active_model: active === undefined ? 'unknown' : (active ?? 'none'),
      };
    });
    return c.json({ object: 'list', data });
  });
  app.all('/boxes/:name/*', known, requireAdmin, (c) => forward(c, deps));
  app.all('/boxes/:name', known, requireAdmin, (c) => forward(c, deps));
}

const onModelsFace: AppMiddleware = (c, next) => {
  c.set('api', 'models');
  return next();
};

async function forward(c: AppContext, { fleet, client }: BoxRoutesDeps): Promise<Response> {
  const name = c.req.param('name');
  const box = fleet.status().find((known) => known.box.name === name)?.box;
  if (!box) throw new AssayError('route_not_found', 'There is no box of this name. GET /boxes lists them.');
  const path = boxPath(c.req.method, c.req.path.slice(`/boxes/${name}`.length) || '/');
  const body =
    c.req.method === 'POST' ? new TextDecoder().decode(await readBytes(c.req.raw.body, MOST_BYTES)) : undefined;
  const response = await send(c, client, box, { method: c.req.method, path, ...(body === undefined ? {} : { body }) });
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const kept of ['content-type', 'retry-after', 'allow']) {
    const value = response.headers.get(kept);
    if (value !== null) headers.set(kept, value);
  }
  return new Response(response.body, { status: response.status, headers });
}

/** The box's own path, made anew from what is allowed. Throws `route_not_found`. */
function boxPath(method: string, path: string): string {
  if (method === 'GET' && GET.has(path)) return path;
  if (method === 'POST' && POST.has(path)) return path;
  if (method === 'DELETE' && path.startsWith(MODEL)) {
    return MODEL + parseModelId(decode(path.slice(MODEL.length)), 'model_id');
  }
  throw new AssayError(
    'route_not_found',
    'A box has no such path for operators: load, unload, delete, download, health and models.',
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function send(
  c: AppContext,
  client: BoxClientDeps,
  box: Box,
  request: Pick<BoxRequest, 'method' | 'path' | 'body'>,
): Promise<Response> {
  const headers: Record<string, string> = {};
  for (const passed of ['accept', 'content-type']) {
    const value = c.req.header(passed);
    if (value !== undefined) headers[passed] = value;
  }
  const call = { requestId: c.get('requestId'), signal: c.req.raw.signal, deadlineMs: DEADLINE_MS };
  try {
    return await fetchBox(box, { ...request, ...call, headers }, client);
  } catch (error) {
    throw error instanceof BoxFault ? error.error : error;
  }
}
