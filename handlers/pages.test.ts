import { expect, test } from 'vitest';
import { scriptedBackend } from '../tests/scripted-backend/backend.ts';
import { scriptedHost } from '../tests/scripted-backend/host.ts';
import { createApp } from './app.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const pages = new Map([
  ['/playground', { contentType: 'text/html; charset=utf-8', body: bytes('<p>playground</p>') }],
  ['/docs/start.js', { contentType: 'text/javascript; charset=utf-8', body: bytes('1') }],
]);
const guard = { loopbackOnly: true, allowOrigins: [] };
const app = createApp({ backend: scriptedBackend({}), pages, guard });
const get = (path: string, init?: RequestInit) => app.request(`http://127.0.0.1${path}`, init);

test('a page is served without a key, with its type and a strict policy', async () => {
  const response = await get('/playground');
  expect([response.status, await response.text()]).toEqual([200, '<p>playground</p>']);
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const policy = response.headers.get('content-security-policy');
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
});

test.each([
  ['POST', '/playground', 405],
  ['GET', '/playground/other.js', 404],
  ['GET', '/docs', 404],
])('%s %s is %i', async (method, path, status) => {
  expect((await get(path, { method })).status).toBe(status);
});

test('the guard applies to pages', async () => {
  expect((await app.request('http://evil.example/playground')).status).toBe(403);
});

test('a browser that opens the root is sent to the playground, and other clients get the status', async () => {
  const host = scriptedHost({});
  const deps = { backend: scriptedBackend({}), guard, host };
  const root = (served: typeof pages | undefined, accept: string) =>
    createApp({ ...deps, ...(served ? { pages: served } : {}) }).request('http://127.0.0.1/', { headers: { accept } });
  const browser = await root(pages, 'text/html,*/*;q=0.8');
  expect([browser.status, browser.headers.get('location')]).toEqual([302, '/playground']);
  expect((await root(pages, '*/*')).status).toBe(200);
  expect((await root(undefined, 'text/html')).status).toBe(200);
});
