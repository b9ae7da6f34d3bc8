import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createTestHarness } from 'wrangler';

const body = JSON.stringify({
  model: 'example/keywords',
  context: 'item: mug\nI want a refund.',
  tasks: [
    { type: 'decide', name: 'wish', question: 'What is wanted?', options: ['exchange', 'refund'] },
    { type: 'extract', name: 'facts', instruction: 'What is it about?', keys: ['item', 'colour'] },
  ],
});
const headers = { authorization: 'Bearer demo', 'content-type': 'application/json' };
const results = { wish: { value: 'refund' }, facts: { item: 'mug', colour: null } };

test('in a Node server with routes of its own', async () => {
  process.env.PORT = '0';
  const { server } = await import('./node/server.ts');
  if (!server.listening) await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const answer = await fetch(`${url}/judge/v1/tasks`, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ results });
    expect(await (await fetch(`${url}/hello`)).text()).toBe('My own route.');
  } finally {
    server.close();
  }
});

test('in a Worker', async () => {
  process.env.WRANGLER_SEND_METRICS = 'false';
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = 'false';
  const configPath = new URL('worker/wrangler.toml', import.meta.url);
  const worker = createTestHarness({ workers: [{ configPath }] });
  try {
    const { url } = await worker.listen();
    const answer = await fetch(new URL('/v1/tasks', url), { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ results });
    expect((await fetch(new URL('/v1/tasks', url), { method: 'POST', body })).status).toBe(401);
  } finally {
    await worker.close();
  }
});
