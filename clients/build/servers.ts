import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { startCasesServer } from '../cases-server.ts';
import type { ServerUrls } from './language.ts';
import { ROOT, WORK } from './paths.ts';

/** What the real server says. */
const LOG = `${WORK}/starter-server.log`;

/** Runs `work` beside the two servers that the tests need: scripted cases, and the real program with its starter model. */
export async function withServers<T>(work: (urls: ServerUrls) => Promise<T>): Promise<T> {
  const cases = await startCasesServer();
  const starter = await startStarter();
  try {
    return await work({ ASSAY_CASES_URL: cases.url, ASSAY_STARTER_URL: starter.url });
  } finally {
    await Promise.all([cases.close(0), starter.close()]);
  }
}

async function startStarter() {
  const home = mkdtempSync(`${tmpdir()}/assay-clients-`);
  const port = await freePort();
  const args = ['adapters/node/bin.ts', 'serve', '--port', String(port), '--home', home, '--api-key', 'demo'];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', openSync(LOG, 'w')] });
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await untilLoaded(url, () => child.exitCode === null);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, close };
}

const LONGEST_START_MS = 120_000;

async function untilLoaded(url: string, runs: () => boolean): Promise<void> {
  const end = Date.now() + LONGEST_START_MS;
  while (Date.now() < end && runs()) {
    const health = await fetch(`${url}/health`).then(
      (response) => response.json() as Promise<{ state?: string }>,
      () => null,
    );
    if (health?.state === 'loaded') return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`The starter server did not come up. It said:\n${readFileSync(LOG, 'utf8')}`);
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}
