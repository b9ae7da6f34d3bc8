import { Hono } from 'hono';
import { expect, it } from 'vitest';
import type { AppEnv } from '../../handlers/context.ts';
import { statusRoutes } from './status-routes.ts';
import type { Fleet } from './upstreams/fleet.ts';
import { parseUpstreams } from './upstreams/upstream.ts';

const [upstream] = parseUpstreams({
  BOXES: [{ name: 'a', url: 'https://a.example', key_secret: 'K', models: ['a/b'] }],
});

type Box = Omit<ReturnType<Fleet['status']>[number], 'upstream'>;
const well = { state: 'closed', active: ['a/b', 'c/d'], device: 'NPU' } as const;
const unknown: Box = { state: 'closed', active: undefined, device: undefined };
const empty: Box = { state: 'closed', active: [], device: 'CPU' };
const gone: Box = { state: 'open', active: undefined, device: undefined };
const returning: Box = { ...gone, state: 'half-open' };

it.each<[string, Box[], { status: string; state: string; device: string | null; active_model: string }]>([
  ['boxes that are well', [well, well], { status: 'ok', state: 'loaded', device: 'NPU', active_model: 'a/b' }],
  ['boxes not known yet', [unknown], { status: 'ok', state: 'loaded', device: null, active_model: 'none' }],
  ['one of two gone', [gone, well], { status: 'degraded', state: 'loaded', device: 'NPU', active_model: 'a/b' }],
  ['one that may be back', [returning], { status: 'degraded', state: 'loaded', device: null, active_model: 'none' }],
  ['boxes without a model', [empty], { status: 'ok', state: 'unloaded', device: 'CPU', active_model: 'none' }],
  ['all gone', [gone, gone], { status: 'error', state: 'error', device: null, active_model: 'none' }],
  [
    'most with another device',
    [well, { ...well, device: 'GPU' }, { ...well, device: 'GPU' }],
    { status: 'ok', state: 'loaded', device: 'GPU', active_model: 'a/b' },
  ],
])('the health of %s', async (_, boxes, expected) => {
  // A cast: the routes use only these two methods.
  const fleet = {
    refresh() {},
    status: () => boxes.map((box) => ({ upstream: upstream!, ...box })),
  } as unknown as Fleet;
  const app = new Hono<AppEnv>();
  statusRoutes(app, fleet, { find: async () => null });
  const health = await app.request('/health');
  expect(await health.json()).toEqual({ ...expected, boxes: boxes.length });
  expect(await (await app.request('/health/live')).json()).toEqual({ live: true });
  const ready = await app.request('/health/ready');
  expect(ready.status).toBe(expected.state === 'loaded' ? 200 : 503);
  expect(await ready.json()).toMatchObject({ ready: expected.state === 'loaded' });
});
