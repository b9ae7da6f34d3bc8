import { createApp } from '../../handlers/app.ts';
import type { AppDeps } from '../../handlers/context.ts';
import { AssayError } from '../../lib/errors.ts';
import { type ApiKey, hashSecret, listedKeys } from '../../lib/keys.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';

/** How the app of a row is made, as JSON. Default: both apis, the key `test-key`, no guard. */
export interface AppScript extends Pick<AppDeps, 'apis' | 'keyForModels' | 'guard' | 'heartbeatMs'> {
  /** By secret. Default: `test-key`, which may use every model. */
  keys?: Record<string, Partial<ApiKey>>;
  /** Requests that the quota lets through; default: all. */
  quota?: number;
  /** Without a `ModelHost`, as at the edge. */
  noHost?: boolean;
}

/**
 * What the hosts serve: for each row of a table its own app on a scripted backend. `PUT /-/rows/<id>` sets a row up,
 * requests with `x-row: <id>` go to its app, `GET /-/rows/<id>` tells what its backend was asked.
 */
export function createStage(): (request: Request) => Promise<Response> {
  const rows = new Map<string, { fetch: (request: Request) => Response | Promise<Response>; recorded: Recorded[] }>();
  return async (request) => {
    const id = request.headers.get('x-row');
    const row = rows.get(id ?? '');
    if (id !== null && row) return row.fetch(request);
    const own = new URL(request.url).pathname.slice('/-/rows/'.length);
    if (request.method === 'GET') return Response.json(rows.get(own)?.recorded ?? null);
    const { app = {}, script = {} } = (await request.json()) as { app?: AppScript; script?: Script };
    const recorded: Recorded[] = [];
    rows.set(own, { fetch: createApp(await depsOf(app, script, recorded)).fetch, recorded });
    return Response.json({ ready: own });
  };
}

export async function depsOf(app: AppScript, script: Script, recorded: Recorded[]): Promise<AppDeps> {
  const { keys = { 'test-key': {} }, quota = Number.POSITIVE_INFINITY, noHost, ...settings } = app;
  const stored = Object.entries(keys).map(async ([secret, key]) => ({
    name: secret,
    models: ['*'],
    scopes: [],
    ...key,
    sha256: await hashSecret(secret),
  }));
  let left = quota;
  return {
    backend: scriptedBackend(script, recorded),
    ...(noHost ? {} : { host: scriptedHost(script, recorded) }),
    keys: listedKeys(await Promise.all(stored)),
    quota: {
      take: async () => {
        if (left-- <= 0) throw new AssayError('rate_limited', 'This key is used up.', { retryAfterSeconds: 7 });
      },
    },
    newRequestId: () => 'generated-id',
    ...settings,
  };
}
