import type { KVNamespace } from 'cloudflare:workers';
import * as v from 'valibot';
import type { Clock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { ApiKey, KeyStore, Quota } from '../../../lib/keys.ts';
import { rateLimited } from '../../../lib/quota.ts';
import type { Env } from '../env.ts';
import { withTimeout } from '../with-timeout.ts';
import { Lease } from './lease.ts';

/** A key as KV holds it, under the SHA-256 of the secret in lower-case hex. `assay keys --edge` writes it. */
const KvKey = v.object({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  models: v.optional(v.array(v.string()), ['*']),
  requestsPerMinute: v.optional(v.pipe(v.number(), v.finite(), v.minValue(1))),
  scopes: v.optional(v.array(v.picklist(['admin'])), []),
  revoked: v.optional(v.boolean(), false),
});

/** KV's own cache, in seconds (60 is its least), then this isolate's. A revoked key is refused after both have run out. */
const KV_CACHE_S = 60;
const KEPT_MS = 30_000;
const MOST_KEPT = 1_000;
const DEADLINE_MS = 5_000;

interface Kept {
  key: ApiKey | null;
  until: number;
  tokens: Tokens;
}

/** Where a key's quota is counted. */
interface Tokens {
  sha256: string;
  lease: Lease;
}

export interface KvKeysDeps {
  kv: KVNamespace;
  quota: Env['QUOTA'];
  clock: Clock;
}

/** Who may ask, from KV, and how often, from the key's Durable Object. */
export class KvKeys implements KeyStore, Quota {
  readonly #deps: KvKeysDeps;
  readonly #kept = new Map<string, Kept>();
  readonly #tokens = new WeakMap<ApiKey, Tokens>();

  constructor(deps: KvKeysDeps) {
    this.#deps = deps;
  }

  /** A lookup by hash: its time tells nothing about the secret. */
  async find(sha256: string): Promise<ApiKey | null> {
    const now = this.#deps.clock.now();
    const kept = this.#kept.get(sha256);
    if (kept && now < kept.until) return kept.key;
    const stored = await inTime(this.#deps.kv.get(sha256, { type: 'json', cacheTtl: KV_CACHE_S }));
    const key = stored === null ? null : apiKey(v.parse(KvKey, stored));
    const tokens = kept?.tokens ?? { sha256, lease: new Lease() };
    if (key) this.#tokens.set(key, tokens);
    if (this.#kept.size >= MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.delete(sha256);
    this.#kept.set(sha256, { key, until: now + KEPT_MS, tokens });
    return key;
  }

  async take(key: ApiKey): Promise<void> {
    const tokens = this.#tokens.get(key);
    if (key.requestsPerMinute === undefined || tokens === undefined) return;
    const { sha256, lease } = tokens;
    const now = this.#deps.clock.now();
    if (lease.use(now)) return;
    const wanted = lease.ask(now);
    const taking = this.#deps.quota.getByName(sha256).take(key.requestsPerMinute, wanted);
    const { retryAfterSeconds, ahead } = await inTime(taking);
    if (wanted > 0) lease.hold(ahead, now);
    if (retryAfterSeconds !== null) throw rateLimited(retryAfterSeconds);
  }
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return withTimeout(
    work,
    DEADLINE_MS,
    () => new AssayError('timeout', 'The store of the API keys did not answer. Try again.'),
  );
}

function apiKey({ revoked, requestsPerMinute, ...key }: v.InferOutput<typeof KvKey>): ApiKey | null {
  if (revoked) return null;
  return { ...key, ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }) };
}
