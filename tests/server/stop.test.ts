import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { Script } from '../scripted-backend/script.ts';

let child: ChildProcess | undefined;
afterEach(() => void child?.kill('SIGKILL'));

/** Starts the server as a user does, and waits until it says where it listens. */
async function start(script: Script): Promise<{ url: string; process: ChildProcess; said: () => string }> {
  const home = await mkdtemp(join(tmpdir(), 'assay-stop-'));
  const file = new URL('scripted-server.ts', import.meta.url).pathname;
  const args = [file, 'serve', '--port', '0', '--home', home, '--api-key', 'demo', '--log-level', 'silent'];
  const started = spawn(process.execPath, args, { env: { ...process.env, SCRIPT: JSON.stringify(script) } });
  child = started;
  let text = '';
  for (const stream of [started.stdout, started.stderr]) stream.on('data', (data) => (text += data));
  await expect.poll(() => text, { timeout: 15_000 }).toMatch(/listens on http\S+/);
  const url = /listens on (http\S+)/.exec(text)?.[1] ?? '';
  return { url, process: started, said: () => text };
}

const ask = (url: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] }),
  });

const exitOf = async (process: ChildProcess) =>
  process.exitCode === null ? (await once(process, 'exit'))[0] : process.exitCode;

test.each(['SIGINT', 'SIGTERM'] as const)('%s of an idle server: exit code 0', async (signal) => {
  const server = await start({});
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  server.process.kill(signal);
  expect(await exitOf(server.process)).toBe(0);
});

/** A chat that takes a second and a half. */
const finish = { type: 'finish', reason: 'stop', usage: { promptTokens: 1, completionTokens: 1 }, metrics: NO_METRICS };
const slow = { chat: [{ event: { type: 'start', model: 'assay/starter' } }, { waitMs: 1500 }, { event: finish }] };

test('SIGTERM lets a request in flight finish, and takes no new ones', async () => {
  const server = await start(slow as Script);
  const answer = ask(server.url);
  await new Promise((resolve) => setTimeout(resolve, 300));
  server.process.kill('SIGTERM');
  await expect.poll(server.said).toContain('Stopping');
  await expect(fetch(`${server.url}/health`)).rejects.toThrow();
  expect((await answer).status).toBe(200);
  expect(await exitOf(server.process)).toBe(0);
});

test('a signal that comes twice at once, as npm passes it on, is one', async () => {
  const server = await start(slow as Script);
  const answer = ask(server.url);
  await new Promise((resolve) => setTimeout(resolve, 300));
  server.process.kill('SIGINT');
  await expect.poll(server.said).toContain('Stopping');
  server.process.kill('SIGINT');
  expect((await answer).status).toBe(200);
  expect(await exitOf(server.process)).toBe(0);
});

test('a second Ctrl-C does not wait for requests in flight', async () => {
  const server = await start({ chat: [{ waitMs: 'forever' }] });
  const answer = ask(server.url).catch(() => 'cut off');
  await new Promise((resolve) => setTimeout(resolve, 300));
  server.process.kill('SIGINT');
  await expect.poll(server.said).toContain('Stopping');
  await new Promise((resolve) => setTimeout(resolve, 600));
  server.process.kill('SIGINT');
  expect(await exitOf(server.process)).toBe(1);
  expect(await answer).toBe('cut off');
});
