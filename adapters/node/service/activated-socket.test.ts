import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { takeActivatedSocket } from './activated-socket.ts';

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
  import { takeActivatedSocket } from '${fileURLToPath(new URL('activated-socket.ts', import.meta.url))}';
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
