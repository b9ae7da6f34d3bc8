import { createApp } from '../../handlers/app.ts';
import type { AppDeps } from '../../handlers/context.ts';
import { AssayError } from '../../lib/errors.ts';
import { type ApiKey, hashSecret, listedKeys } from '../../lib/keys.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';

/** The options of a row's app, as JSON. Default: both interfaces, the key `test-key`, no guard. */
export interface AppScript extends Pick<AppDeps, 'apis' | 'keyForModels' | 'guard' | 'heartbeatMs'> {
  /** Keys by secret. Default: `test-key`, which may use every model. */
  keys?: Record<string, Partial<ApiKey>>;
  aliases?: readonly string[];
  /** Requests that the quota admits; default: all. */
  quota?: number;
  /** Without a `ModelHost`, as at the edge. */
  noHost?: boolean;
}

/**
 * The server of all hosts: each row of a table has its own app on a scripted backend. `PUT /-/rows/<id>` sets a row up,
 * requests with `x-row: <id>` go to its app, `GET /-/rows/<id>` returns its backend's calls.
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
  const { keys = { 'test-key': {} }, aliases = [], quota = Number.POSITIVE_INFINITY, noHost, ...settings } = app;
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
    aliases: new Set(aliases),
    keys: listedKeys(await Promise.all(stored)),
    // Counts the requests of the key as a whole.
    quota: {
      take: async (_, { requests = 0 } = { requests: 1 }, model) => {
        if (requests === 0 || model !== undefined) return;
        if (left <= 0) throw new AssayError('rate_limited', 'This key is used up.', { retryAfterSeconds: 7 });
        left--;
      },
      giveBack: async (_, { requests = 0 }, model) => {
        if (model === undefined) left += requests;
      },
    },
    newRequestId: () => 'generated-id',
    ...settings,
  };
}
