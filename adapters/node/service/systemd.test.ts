import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openNotify, takeActivatedSocket } from './systemd.ts';

test.each([
  ['none', {}, null],
  ['one for this process', { LISTEN_PID: '7', LISTEN_FDS: '1', LISTEN_FDNAMES: 'assay.socket' }, 3],
  ['one for its parent', { LISTEN_PID: '6', LISTEN_FDS: '1' }, null],
  ['no descriptors', { LISTEN_PID: '7', LISTEN_FDS: '0' }, null],
  ['nonsense', { LISTEN_PID: '7', LISTEN_FDS: 'x' }, null],
])('the socket of systemd: %s', (_, env, descriptor) => {
  const left: Record<string, string | undefined> = { HOME: '/h', ...env };
  expect(takeActivatedSocket(left, 7)).toBe(descriptor);
  expect(left).toEqual({ HOME: '/h' });
});

/** Program of a server that takes its socket from systemd. */
const SERVER = `
  import { startServer } from '${fileURLToPath(new URL('../server.ts', import.meta.url))}';
  import { takeActivatedSocket } from '${fileURLToPath(new URL('systemd.ts', import.meta.url))}';
  const activated = takeActivatedSocket(process.env, process.pid);
  await startServer(() => new Response('here'), { host: process.env.TEST_HOST, port: 1, activated });`;

const ACTIVATE = 'systemd-socket-activate';
const hasActivate = await promisify(execFile)(ACTIVATE, ['--version']).then(
  () => true,
  () => false,
);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  // A server on TCP has an address with a port.
  return (address as { port: number }).port;
}

test.skipIf(!hasActivate).each([
  ['of the same address answers', '127.0.0.1', 'here'],
  ['of another address refuses to start: keys and Hosts are checked by it', '0.0.0.0', 'same address'],
])('behind a loopback socket of systemd, a server %s', async (_, host, expected) => {
  const port = await freePort();
  const args = ['--listen', `127.0.0.1:${port}`, '--setenv', `TEST_HOST=${host}`];
  const child = spawn(ACTIVATE, [...args, process.execPath, '--input-type=module', '--eval', SERVER]);
  try {
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    await expect.poll(() => said).toContain('Listening on');
    const answer = await fetch(`http://127.0.0.1:${port}`).then(
      (response) => response.text(),
      () => 'no answer',
    );
    await expect.poll(() => `${answer} ${said}`).toContain(expected);
  } finally {
    child.kill();
  }
});

/**
 * Folder with a substitute for systemd-notify that records its argument. Written before any test starts a process: one
 * that is forked meanwhile would hold the file open, and running it would fail (ETXTBSY).
 */
const programs = await mkdtemp(join(tmpdir(), 'assay-notify-'));
await writeFile(join(programs, 'systemd-notify'), '#!/bin/sh\necho "$1" >> "$NOTIFY_SOCKET"\n', { mode: 0o755 });

async function recorder(): Promise<{ env: Record<string, string>; said(): Promise<string[]> }> {
  const log = join(await mkdtemp(join(tmpdir(), 'assay-notify-')), 'said');
  const said = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  return { env: { PATH: `${programs}:${process.env.PATH}`, NOTIFY_SOCKET: log }, said };
}

test('says that the server is ready, then that it lives, and that it stops', async () => {
  const { env, said } = await recorder();
  const notify = openNotify({ ...env, WATCHDOG_USEC: '30000', WATCHDOG_PID: String(process.pid) }, process.pid);
  notify.ready();
  await expect.poll(said).toEqual(expect.arrayContaining(['READY=1', 'WATCHDOG=1']));
  notify.stopping();
  await expect.poll(said).toContain('STOPPING=1');
});

test('feeds no watchdog of another process, and says nothing without systemd', async () => {
  const { env, said } = await recorder();
  openNotify({ ...env, WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' }, process.pid).ready();
  await expect.poll(said).toEqual(['READY=1']);
  const { NOTIFY_SOCKET: _, ...without } = env;
  openNotify(without, process.pid).ready();
  expect(await said()).toEqual(['READY=1']);
});
