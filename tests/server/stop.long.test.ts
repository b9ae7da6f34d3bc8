import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { BIN } from '../cli/assay.ts';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { Script } from '../scripted-backend/script.ts';

let child: ChildProcess | undefined;
afterEach(() => void child?.kill('SIGKILL'));

/** Starts the server as a user does, and waits until it prints its address. */
async function start(
  script: Script,
  ...flags: string[]
): Promise<{ url: string; process: ChildProcess; said: () => string }> {
  const home = await mkdtemp(join(tmpdir(), 'assay-stop-'));
  const file = new URL('scripted-server.ts', import.meta.url).pathname;
  const args = [file, 'serve', '--port', '0', '--home', home, '--api-key', 'demo', '--log-level', 'silent', ...flags];
  const started = spawn(process.execPath, args, { env: { ...process.env, SCRIPT: JSON.stringify(script) } });
  child = started;
  let text = '';
  for (const stream of [started.stdout, started.stderr]) stream.on('data', (data) => (text += data));
  await expect.poll(() => text).toMatch(/listens on http\S+/);
  const url = /listens on (http\S+)/.exec(text)?.[1] ?? '';
  return { url, process: started, said: () => text };
}

/** Requests a stream, and returns the rest of it. The stream has begun when this resolves. */
async function ask(url: string): Promise<{ rest: Promise<string> }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], stream: true }),
  });
  return { rest: response.text().catch(() => 'cut off') };
}

const exitOf = async (process: ChildProcess) =>
  process.exitCode === null ? (await once(process, 'exit'))[0] : process.exitCode;

test.each(['SIGINT', 'SIGTERM'] as const)('%s of an idle server: exit code 0', async (signal) => {
  const server = await start({});
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  server.process.kill(signal);
  expect(await exitOf(server.process)).toBe(0);
});

/** A module that sends its own process SIGTERM as soon as it has written that it listens. */
const atOnce = `const { write } = process.stdout;
process.stdout.write = (text, ...rest) => {
  const more = write.call(process.stdout, text, ...rest);
  if (String(text).includes('listens on')) process.kill(process.pid, 'SIGTERM');
  return more;
};`;

test.each([
  ['serve', new URL('scripted-server.ts', import.meta.url).pathname],
  ['mcp --http', BIN],
])('SIGTERM as soon as `assay %s` says that it listens: exit code 0', async (command, file) => {
  const home = await mkdtemp(join(tmpdir(), 'assay-stop-'));
  const args = [...command.split(' '), '--port', '0', '--home', home, '--api-key', 'demo'];
  child = spawn(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(atOnce)}`, file, ...args]);
  expect(await exitOf(child)).toBe(0);
});

const begin = { event: { type: 'start', model: 'assay/starter' } };
const finish = { type: 'finish', reason: 'stop', usage: { promptTokens: 1, completionTokens: 1 }, metrics: NO_METRICS };
/** A chat that takes a second and a half. */
const slow = { chat: [begin, { waitMs: 1500 }, { event: finish }] };

test('SIGTERM lets a request in flight finish, and takes no new ones', async () => {
  const server = await start(slow as Script);
  const { rest } = await ask(server.url);
  server.process.kill('SIGTERM');
  await expect.poll(server.said).toContain('Stopping');
  await expect(fetch(`${server.url}/health`)).rejects.toThrow();
  expect(await rest).toContain('[DONE]');
  expect(await exitOf(server.process)).toBe(0);
});

test('two signals at once, as npm passes them on, count as one', async () => {
  const server = await start(slow as Script);
  const { rest } = await ask(server.url);
  // Two of one kind could arrive as one, and both are handled alike.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) server.process.kill(signal);
  await expect.poll(server.said).toContain('Stopping');
  expect(await rest).toContain('[DONE]');
  expect(await exitOf(server.process)).toBe(0);
});

test('a second Ctrl-C does not wait for requests in flight', async () => {
  const server = await start({ chat: [begin, { waitMs: 'forever' }] } as Script);
  const { rest } = await ask(server.url);
  server.process.kill('SIGINT');
  await expect.poll(server.said).toContain('Stopping');
  // Later than an echo of the first.
  await new Promise((resolve) => setTimeout(resolve, 600));
  server.process.kill('SIGINT');
  expect(await exitOf(server.process)).toBe(1);
  expect(await rest).toBe('cut off');
});

const readyOf = async (url: string) => (await fetch(`${url}/health/ready`)).status;

test.each([[[]], [['--shutdown-delay', '3']]])(
  'SIGTERM of a server behind a load balancer: not ready first, and it still takes requests (%j)',
  async (flags) => {
    const server = await start(slow as Script, ...flags);
    expect(await readyOf(server.url)).toBe(200);
    server.process.kill('SIGTERM');
    await expect.poll(server.said).toContain('Stopping');
    expect(await readyOf(server.url)).toBe(503);
    const late = await fetch(`${server.url}/health`);
    expect(late.headers.get('connection')).toBe('close');
    expect(await (await ask(server.url)).rest).toContain('[DONE]');
    expect(await exitOf(server.process)).toBe(0);
  },
);

test('requests that outlast --drain-seconds are ended, and the server says so', async () => {
  const server = await start({ chat: [begin, { waitMs: 'forever' }] } as Script, '--drain-seconds', '1');
  const { rest } = await ask(server.url);
  server.process.kill('SIGTERM');
  await rest;
  expect(await exitOf(server.process)).toBe(0);
  expect(server.said()).toContain('Give them more time with --drain-seconds');
});

test('what does not end at all keeps the server for some seconds only', async () => {
  const server = await start({ neverEnds: true }, '--drain-seconds', '0');
  server.process.kill('SIGTERM');
  expect(await exitOf(server.process)).toBe(0);
});
