import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const WRANGLER = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
export const OFFLINE = { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' };

/** Bundles the Worker of `wrangler.toml`, or another one, as `wrangler deploy` does. */
export async function bundle(main?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'assay-edge-'));
  try {
    const args = ['deploy', ...(main ? [main] : []), '--dry-run', '--env', '', '--outdir', folder];
    const env = { ...process.env, ...OFFLINE };
    await promisify(execFile)(process.execPath, [WRANGLER, ...args], { cwd: ROOT, env });
    return await readFile(join(folder, `${basename(main ?? 'index.ts', '.ts')}.js`), 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}

export interface WorkerInput {
  name: string;
  script: string;
  bindings?: Record<string, string | number | object>;
  kvNamespaces?: Record<string, string>;
  durableObjects?: Record<string, { className: string; useSQLite: true; scriptName?: string }>;
}

export interface RunningWorkers {
  /** One address for each Worker, served by workerd itself. */
  urls: string[];
  /** Lines of their logs. */
  log: string[];
  miniflare: Miniflare;
  close(): Promise<void>;
}

/**
 * Runs Workers in one workerd, with the settings of `wrangler.toml`. Not with wrangler's test harness: that routes the
 * fetches of a Worker through Node, where an abort gets lost.
 */
export async function runWorkers(workers: readonly WorkerInput[]): Promise<RunningWorkers> {
  Object.assign(process.env, OFFLINE);
  const log: string[] = [];
  const options = workers.map(({ script, ...worker }) => ({
    ...worker,
    modules: [{ type: 'ESModule' as const, path: 'index.js', contents: script }],
    compatibilityDate: '2026-10-20',
    compatibilityFlags: ['enable_request_signal'],
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
  }));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      workers: options as Parameters<typeof convertV4MiniflareOptions>[0] extends { workers: infer W } ? W : never,
      handleStructuredLogs: ({ message }) => log.push(message),
    }),
  );
  await miniflare.ready;
  const urls = await Promise.all(workers.map(async ({ name }) => (await miniflare.unsafeGetDirectURL(name)).origin));
  return { urls, log, miniflare, close: () => miniflare.dispose() };
}
