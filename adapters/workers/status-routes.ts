import type { Hono } from 'hono';
import { requireKey } from '../../handlers/auth.ts';
import type { AppEnv, AppHandler } from '../../handlers/context.ts';
import { routesOf } from '../../handlers/routes.ts';
import type { KeyStore } from '../../lib/keys.ts';
import type { EdgeHealth } from '../../lib/schema/status.ts';
import type { Fleet } from './upstreams/fleet.ts';

/**
 * Adds the routes that describe the gateway (docs/interface.md, E-2): `GET /` and `GET /health`, which need no key, and
 * `GET /currentmodel`, which has the body of `/health` and needs a key.
 */
export function statusRoutes(app: Hono<AppEnv>, fleet: Fleet, keys: KeyStore): void {
  const open = routesOf(app, 'models');
  const health: AppHandler = (c) =>
    c.json<EdgeHealth>({ status: fleetHealth(fleet), active_model: activeModel(fleet) });
  open('GET', ['/'], (c) => {
    const description = 'Assay edge: the decision service and chat completions, answered by boxes behind it.';
    return c.json({ status: 'running', active_model: activeModel(fleet), description });
  });
  open('GET', ['/health'], health);
  routesOf(app, 'models', requireKey(keys))('GET', ['/currentmodel'], health);
}

/** Returns `ok` if requests may be sent to every upstream, `degraded` if only to some, `error` if to none. */
function fleetHealth(fleet: Fleet): EdgeHealth['status'] {
  const states = fleet.status().map(({ state }) => state);
  if (states.every((state) => state === 'open')) return 'error';
  return states.every((state) => state === 'closed') ? 'ok' : 'degraded';
}

/** Returns the model that most upstreams have loaded; `none` if no upstream is known to have one. */
function activeModel(fleet: Fleet): string {
  const counts = new Map<string, number>();
  for (const { active } of fleet.status()) {
    if (active) counts.set(active, (counts.get(active) ?? 0) + 1);
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most?.[0] ?? 'none';
}
