import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { hashSecret } from '../../lib/keys.ts';
import { BOX_KEY, type TestBox } from './box.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
export const OFFLINE = { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' };

/** What KV holds of a key; by secret. */
export type TestKeys = Record<string, object>;

export interface TestEdge {
  /** One address for each edge; they are Workers of their own, with the Durable Objects of the first. */
  urls: string[];
  /** Lines of the Workers' logs. */
  log: string[];
  putKey(secret: string, key: object): Promise<void>;
  close(): Promise<void>;
}

interface WritableKv {
  put(key: string, value: string): Promise<void>;
}

/** The bundle as `wrangler deploy` makes it. */
export async function bundle(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'assay-edge-'));
  try {
    const args = ['deploy', '--dry-run', '--env', '', '--outdir', folder];
    await promisify(execFile)(join(ROOT, 'node_modules/.bin/wrangler'), args, {
      cwd: ROOT,
      env: { ...process.env, ...OFFLINE },
    });
    return await readFile(join(folder, 'index.js'), 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}

export interface BoxBinding {
  name: string;
  url: string;
  models: readonly string[];
}

export interface EdgeOptions {
  keys?: TestKeys;
  /** How many Workers; they share the Durable Objects. */
  edges?: number;
  /** The secret BOX_KEY. */
  boxKey?: string;
  vars?: Record<string, string | number>;
}

/** Runs the bundle in the real workerd. */
export async function startEdge(
  script: string,
  boxes: readonly (TestBox | BoxBinding)[],
  { keys = { 'test-key': {} }, edges = 1, boxKey = BOX_KEY, vars = {} }: EdgeOptions = {},
): Promise<TestEdge> {
  Object.assign(process.env, OFFLINE);
  const log: string[] = [];
  const listed = boxes.map((box) => ({
    name: box.name,
    url: box.url,
    key_secret: 'BOX_KEY',
    models: [...('models' in box ? box.models : ['assay/starter'])],
  }));
  const worker = (i: number) => ({
    name: `edge-${i}`,
    modules: [{ type: 'ESModule' as const, path: 'index.js', contents: script }],
    compatibilityDate: '2026-10-20',
    compatibilityFlags: ['enable_request_signal'],
    bindings: { ...vars, BOXES: listed, BOX_KEY: boxKey },
    kvNamespaces: { KEYS: 'keys' },
    durableObjects: {
      QUOTA: { className: 'QuotaObject', useSQLite: true, ...(i === 0 ? {} : { scriptName: 'edge-0' }) },
      FLEET: { className: 'FleetObject', useSQLite: true, ...(i === 0 ? {} : { scriptName: 'edge-0' }) },
    },
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
  });
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      workers: Array.from({ length: edges }, (_, i) => worker(i)),
      handleStructuredLogs: ({ message }) => log.push(message),
    }),
  );
  await miniflare.ready;
  const { KEYS: kv } = await miniflare.getBindings<{ KEYS: WritableKv }>('edge-0');
  const putKey = async (secret: string, key: object) =>
    kv.put(await hashSecret(secret), JSON.stringify({ name: secret, ...key }));
  for (const [secret, key] of Object.entries(keys)) await putKey(secret, key);
  const urls: string[] = [];
  for (let i = 0; i < edges; i++) urls.push((await miniflare.unsafeGetDirectURL(`edge-${i}`)).origin);
  return { urls, log, putKey, close: () => miniflare.dispose() };
}
