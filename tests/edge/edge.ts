import { hashSecret } from '../../lib/keys.ts';
import { BOX_KEY, type TestUpstream } from './upstream.ts';
import { runWorkers } from './workerd.ts';

export interface TestEdge {
  /** One address for each edge; they are separate Workers that share the Durable Objects of the first. */
  urls: string[];
  /** Lines of the Workers' logs. */
  log: string[];
  close(): Promise<void>;
}

export interface EdgeOptions {
  /** The keys in KV, by secret. Default: `test-key`, which may use everything. */
  keys?: Record<string, object>;
  edges?: number;
  vars?: Record<string, string | number>;
  /** The models of every upstream. Default: `assay/starter`. */
  models?: readonly string[];
}

interface WritableKv {
  put(key: string, value: string): Promise<void>;
}

/** Runs the bundle in the real workerd. */
export async function startEdge(
  script: string,
  upstreams: readonly Pick<TestUpstream, 'name' | 'url'>[],
  { keys = { 'test-key': {} }, edges = 1, vars = {}, models = ['assay/starter'] }: EdgeOptions = {},
): Promise<TestEdge> {
  const listed = upstreams.map(({ name, url }) => ({ name, url, key_secret: 'BOX_KEY', models }));
  const worker = (i: number) => {
    const elsewhere = i === 0 ? {} : { scriptName: 'edge-0' };
    return {
      name: `edge-${i}`,
      script,
      bindings: { ...vars, BOXES: listed, BOX_KEY },
      kvNamespaces: { KEYS: 'keys' },
      durableObjects: {
        QUOTA: { className: 'QuotaObject', useSQLite: true as const, ...elsewhere },
        FLEET: { className: 'FleetObject', useSQLite: true as const, ...elsewhere },
      },
    };
  };
  const workers = await runWorkers(Array.from({ length: edges }, (_, i) => worker(i)));
  const { KEYS: kv } = await workers.miniflare.getBindings<{ KEYS: WritableKv }>('edge-0');
  for (const [secret, key] of Object.entries(keys)) {
    await kv.put(await hashSecret(secret), JSON.stringify({ name: secret, ...key }));
  }
  return workers;
}
