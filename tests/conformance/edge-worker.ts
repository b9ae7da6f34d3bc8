import { DEADLINES, ForwardingBackend } from '../../adapters/workers/forward/backend.ts';
import { Fleet } from '../../adapters/workers/upstreams/fleet.ts';
import type { Upstream } from '../../adapters/workers/upstreams/upstream.ts';
import { createApp } from '../../handlers/app.ts';
import { systemClock } from '../../lib/clock.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { Script } from '../scripted-backend/script.ts';
import { type AppScript, depsOf } from './stage.ts';

// The bundler requires the objects that wrangler.toml names; nothing here uses them.
export { FleetObject, QuotaObject } from '../../adapters/workers/index.ts';

interface Env {
  /** The address of the stage that acts as the upstream of every row. */
  BOX: string;
}

const apps = new Map<string, (request: Request) => Response | Promise<Response>>();

/** Runs the stage behind an edge: keys and quota of a row are the edge's, an upstream runs its script over HTTP. */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const id = request.headers.get('x-row');
    if (id !== null) return apps.get(id)!(request);
    const { pathname } = new URL(request.url);
    if (request.method === 'GET') return fetch(env.BOX + pathname);
    const { app = {}, script = {} } = (await request.json()) as { app?: AppScript; script?: Script };
    const row = pathname.slice('/-/rows/'.length);
    const { host: _, ...deps } = await depsOf(app, script, []);
    apps.set(row, createApp({ ...deps, backend: forwarding(env.BOX, row, script) }).fetch);
    return fetch(env.BOX + pathname, { method: 'PUT', body: JSON.stringify({ script }) });
  },
};

function forwarding(url: string, row: string, script: Script): ForwardingBackend {
  const models = Array.isArray(script.models) ? script.models.map(({ id }) => parseModelId(id)) : [];
  const starter = parseModelId('assay/starter');
  const upstream: Upstream = { name: 'box', url, key_secret: 'BOX_KEY', models: [starter, ...models], weight: 1 };
  const clock = systemClock;
  const fleet = new Fleet({
    upstreams: [upstream],
    report: async () => ({}),
    waitUntil: () => {},
    clock,
    edge: 'edge',
  });
  return new ForwardingBackend(
    fleet,
    {
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...(init?.headers as Record<string, string>), 'x-row': row } }),
      keyOf: () => 'test-key',
      clock,
      log: () => {},
    },
    DEADLINES,
  );
}
