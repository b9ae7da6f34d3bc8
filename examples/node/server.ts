// Runs Assay inside a server of your own: `npm run build && npx node examples/node/server.ts`
import { serve } from '@hono/node-server';
import { createApp, hashSecret, listedKeys, memoryQuota, systemClock } from 'assay';
import { Hono } from 'hono';
import { keywordBackend } from '../keyword-backend.ts';

const key = { name: 'me', sha256: await hashSecret('demo'), models: ['*'], scopes: [], requestsPerMinute: 600 };

const assay = createApp({
  backend: keywordBackend,
  apis: ['decisions'],
  keys: listedKeys([key]),
  quota: memoryQuota(systemClock),
  guard: { loopbackOnly: true, allowOrigins: [] },
});

const app = new Hono();
app.get('/hello', (c) => c.text('My own route.'));
app.mount('/judge', assay.fetch);

const address = { hostname: '127.0.0.1', port: Number(process.env.PORT ?? 8787) };
export const server = serve({ fetch: app.fetch, ...address }, ({ port }) => {
  console.log(`Listening on http://127.0.0.1:${port}: GET /hello, POST /judge/v1/tasks`);
});
