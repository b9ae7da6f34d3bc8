import type { Hono } from 'hono';
import { requireKey } from '../../handlers/auth.ts';
import type { AppEnv, AppHandler, AppMiddleware } from '../../handlers/context.ts';
import { mountPath } from '../../handlers/mount.ts';
import { live } from '../../handlers/status.ts';
import type { KeyStore } from '../../lib/keys.ts';
import type { EdgeHealth, Readiness } from '../../lib/schema/status.ts';
import type { Fleet } from './upstreams/fleet.ts';

/**
 * Adds the routes that describe the edge (docs/interface.md, E-2): `GET /`, `GET /health` and the probes, which need no
 * key, and `GET /currentmodel`, which has the body of `/health` and needs a key.
 */
export function statusRoutes(app: Hono<AppEnv>, fleet: Fleet, keys: KeyStore): void {
  const get = (path: string, handler: AppHandler, ...before: AppMiddleware[]) =>
    mountPath(app, 'models', path, [{ method: 'GET', before, handler }]);
  const health: AppHandler = (c) => c.json(fleetHealth(fleet));
  get('/', (c) => {
    const description = 'Assay edge: the decision service and chat completions, answered by boxes behind it.';
    return c.json({ status: 'running', active_model: fleetHealth(fleet).active_model, description });
  });
  get('/health', health);
  get('/health/live', live);
  get('/health/ready', (c) => {
    const { state } = fleetHealth(fleet);
    if (state === 'loaded') return c.json<Readiness>({ ready: true });
    const reason = state === 'error' ? 'No box can be reached.' : 'No box has a model loaded.';
    return c.json<Readiness>({ ready: false, reason }, 503);
  });
  get('/currentmodel', health, requireKey(keys));
}

/** Describes all upstreams together: `device` and `active_model` are those that most upstreams report. */
function fleetHealth(fleet: Fleet): EdgeHealth {
  // Without this, an edge that gets no other requests would never learn what its boxes report.
  fleet.refresh();
  const upstreams = fleet.status();
  const reachable = upstreams.filter(({ state }) => state !== 'open');
  const whole = upstreams.every(({ state }) => state === 'closed');
  // While an upstream's health is unknown, it counts as serving, as for requests (`Fleet.candidates`).
  const serving = reachable.some(({ active }) => active === undefined || active.length > 0);
  return {
    status: reachable.length === 0 ? 'error' : whole ? 'ok' : 'degraded',
    state: reachable.length === 0 ? 'error' : serving ? 'loaded' : 'unloaded',
    device: mostFrequent(upstreams.map(({ device }) => device)) ?? null,
    active_model: mostFrequent(upstreams.map(({ active }) => active?.[0])) ?? 'none',
    boxes: upstreams.length,
  };
}

/** Returns the value that most upstreams report; undefined if none of them reports one. */
function mostFrequent<Value extends string>(reported: readonly (Value | null | undefined)[]): Value | undefined {
  const counts = new Map<Value, number>();
  for (const value of reported) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
