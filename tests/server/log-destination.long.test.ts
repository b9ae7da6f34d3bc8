import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { composeScripted } from '../scripted-backend/compose.ts';

const file = (path: string) => new URL(path, import.meta.url).pathname;
const children: ChildProcess[] = [];
let full = 0;
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  if (full) closeSync(full);
  full = 0;
});

const diskFull = () => (full ||= openSync('/dev/full', 'w'));

function run(args: string[], stdio: StdioOptions): ChildProcess {
  const child = spawn(process.execPath, args, { stdio });
  children.push(child);
  return child;
}

/** Starts the server on a scripted backend, or the real one without a model; returns its address. */
async function serve(program: string, stdio: StdioOptions): Promise<{ child: ChildProcess; url: string }> {
  const home = await mkdtemp(join(tmpdir(), 'assay-log-'));
  const port = await freePort();
  const child = run([program, 'serve', '--port', `${port}`, '--home', home, '--api-key', 'demo', '--no-load'], stdio);
  const url = `http://127.0.0.1:${port}`;
  const answers = () => fetch(url).then(({ status }) => status, String);
  await expect.poll(answers).toBe(200);
  return { child, url };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

const exitOf = async (child: ChildProcess) => child.exitCode ?? (await once(child, 'exit'))[0];

describe.skipIf(process.platform !== 'linux')('a server goes on', () => {
  test('where its log is on a full disk', async () => {
    const { child, url } = await serve(file('scripted-server.ts'), ['ignore', 'ignore', diskFull()]);
    for (const path of ['/health', '/nowhere']) expect((await fetch(url + path)).status).not.toBe(500);
    child.kill('SIGTERM');
    expect(await exitOf(child)).toBe(0);
  });

  test('where what it says is on a full disk', async () => {
    const { child, url } = await serve(file('../../adapters/node/bin.ts'), ['ignore', diskFull(), 'ignore']);
    await delay(100);
    expect((await fetch(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exitOf(child)).toBe(0);
  });

  test('where nobody reads its log, and reports later how much is missing', { timeout: 60_000 }, async () => {
    const { child, url } = await serve(file('scripted-server.ts'), ['ignore', 'ignore', 'pipe']);
    const statuses = new Set<number>();
    for (let i = 0; i < 300; i++) statuses.add((await fetch(`${url}/${'x'.repeat(8_000)}`)).status);
    expect([...statuses]).toEqual([404]);
    let lines = '';
    child.stderr!.setEncoding('utf8').on('data', (data) => (lines += data));
    await expect.poll(() => lines).toMatch(/log lines dropped.*\n$/);
    const records = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { dropped } = records.at(-1);
    expect(dropped).toBeGreaterThan(0);
    expect(records.filter(({ path }) => path?.startsWith('/xxx'))).toHaveLength(300 - dropped);
    await fetch(`${url}/last`);
    await expect.poll(() => lines).toContain('"/last"');
  });

  test('and ends when it is told to, though nobody reads its log', { timeout: 60_000 }, async () => {
    const { child, url } = await serve(file('scripted-server.ts'), ['ignore', 'ignore', 'pipe']);
    for (let i = 0; i < 100; i++) await fetch(`${url}/${'x'.repeat(8_000)}`);
    child.kill('SIGTERM');
    expect(await exitOf(child)).toBe(0);
  });
});

describe('the last lines before', () => {
  test.each([
    ['the end', 'process.exit(0)', 0],
    ['a crash', 'throw new Error("crash")', 1],
  ])('%s come', async (_, end, code) => {
    const log = JSON.stringify(file('../../adapters/node/log.ts'));
    const script = `
      const { createLog } = await import(${log});
      const log = createLog('info');
      for (let i = 0; i < 900; i++) log.info({ i, text: 'x'.repeat(1_000) });
      ${end}`;
    const child = run(['--input-type=module', '-e', script], ['ignore', 'ignore', 'pipe']);
    const lines = await text(child.stderr!);
    expect(lines.match(/"i":\d+/g)).toHaveLength(900);
    expect(await exitOf(child)).toBe(code);
  });
});

test('a line comes whole that is longer than all that may wait', async () => {
  const script = `
    const { createLog } = await import(${JSON.stringify(file('../../adapters/node/log.ts'))});
    createLog('info').info({ text: 'x'.repeat(3_000_000) });
    process.stdin.resume();`;
  const child = run(['--input-type=module', '-e', script], ['pipe', 'ignore', 'pipe']);
  let line = '';
  for await (const chunk of child.stderr!.setEncoding('utf8')) {
    line += chunk;
    if (line.endsWith('\n')) child.stdin!.end();
  }
  expect(JSON.parse(line).text).toHaveLength(3_000_000);
});

test('a log that throws fails no request', async () => {
  const { backend, host } = await composeScripted()();
  const log = () => {
    throw new Error('ENOSPC');
  };
  const app = createApp({ backend, host, apis: ['models'], log });
  const response = await app.request('http://localhost/health');
  expect(response.status).toBe(200);
  expect(response.headers.get('x-request-id')).not.toBeNull();
});
