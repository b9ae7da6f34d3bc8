import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { HubServer } from '../../tests/hub/hub-server.ts';
import { fixtureModel } from '../../tests/registry/machine.ts';
import { startCasesServer } from '../cases-server.ts';
import type { ServerUrls } from './language.ts';
import { ROOT, WORK } from './paths.ts';

/**
 * Speed of the test hub. The weights of `acme/qwen3` have 334 kB, so its download lasts long enough for a test to watch
 * and abandon it, on a busy machine too.
 */
const HUB_BYTES_PER_SECOND = 50_000;

/**
 * Starts the servers that the tests need, runs `work`, and stops them. They are: a server with scripted cases,
 * `assay serve` with the starter model, and `assay serve` without a model, which downloads from a hub on this machine.
 */
export async function withServers<T>(work: (urls: ServerUrls) => Promise<T>): Promise<T> {
  const cases = await startCasesServer();
  const hub = await startHub();
  const servers = await Promise.all([
    startServer('starter', [], 'loaded'),
    startServer('hub', ['--no-load'], 'unloaded', { HF_ENDPOINT: hub.endpoint, HF_TOKEN: '' }),
  ]);
  const [starter, empty] = servers;
  try {
    return await work({
      ASSAY_CASES_URL: cases.url,
      ASSAY_STARTER_URL: starter.url,
      ASSAY_HUB_URL: empty.url,
      ASSAY_HUB_CACHE: empty.cache,
    });
  } finally {
    await Promise.all([cases.close(0), hub.stop(), ...servers.map((server) => server.close())]);
  }
}

async function startHub(): Promise<HubServer> {
  const hub = await HubServer.start(
    await fixtureModel('optimum/qwen3', 'acme/qwen3'),
    await fixtureModel('genai/llama-int4', 'acme/llama'),
    await fixtureModel('genai/llama-int4', 'acme/gated', 'gated'),
  );
  hub.fail({
    on: 'content',
    path: 'onnx/model.onnx',
    fault: { kind: 'throttle', bytesPerSecond: HUB_BYTES_PER_SECOND },
  });
  return hub;
}

/**
 * Starts `assay serve` with its own home folder and hub cache. Resolves when `/health` reports `state`, with the URL,
 * the folder of the hub cache, and a function that stops the server and removes its files. Throws an `Error` with the
 * server's log if that takes too long.
 */
async function startServer(name: string, flags: string[], state: string, env: Record<string, string> = {}) {
  const home = mkdtempSync(`${tmpdir()}/assay-clients-`);
  const log = `${WORK}/${name}-server.log`;
  const cache = `${home}/hub`;
  const port = await freePort();
  const args = ['adapters/node/bin.ts', 'serve', '--port', String(port), '--home', home, '--api-key', 'demo', ...flags];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', openSync(log, 'w')],
    env: { ...process.env, HF_HUB_CACHE: cache, ...env },
  });
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await until(state, url, () => child.exitCode === null);
  } catch {
    await close();
    throw new Error(`The ${name} server did not come up. It said:\n${readFileSync(log, 'utf8')}`);
  }
  return { url, cache, close };
}

const LONGEST_START_MS = 120_000;

async function until(state: string, url: string, runs: () => boolean): Promise<void> {
  const end = Date.now() + LONGEST_START_MS;
  while (Date.now() < end && runs()) {
    const health = await fetch(`${url}/health`).then(
      (response) => response.json() as Promise<{ state?: string }>,
      () => null,
    );
    if (health?.state === state) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`${url} is not ${state}.`);
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}
