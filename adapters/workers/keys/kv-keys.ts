import * as v from 'valibot';
import { PRIORITIES } from '../../../lib/backend.ts';
import type { Clock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import {
  type ApiKey,
  KeyLimits,
  type KeyStore,
  limitsOf,
  QUOTA_UNITS,
  type Quota,
  type QuotaAmount,
  type QuotaUnit,
} from '../../../lib/keys.ts';
import { rateLimited } from '../../../lib/limits/quota.ts';
import type { KVNamespace } from '../bindings.ts';
import type { Env } from '../env.ts';
import { withTimeout } from '../with-timeout.ts';

/**
 * Describes an API key in KV, as `assay keys --edge` writes it. KV stores it under the SHA-256 hash of its
 * secret, in lower-case hex.
 */
const KvKey = v.object({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  models: v.optional(v.array(v.string()), ['*']),
  requestsPerMinute: v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(1))),
  tokensPerMinute: v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(1))),
  limits: KeyLimits,
  sharesCache: v.exactOptional(v.boolean()),
  priority: v.exactOptional(v.picklist(PRIORITIES)),
  scopes: v.optional(v.array(v.picklist(['admin'])), []),
  revoked: v.optional(v.boolean(), false),
});

/**
 * Seconds for which KV caches a key; 60 is the smallest value that it allows. A revoked key is accepted for at most
 * this time plus `KEPT_MS`.
 */
const KV_CACHE_S = 60;
/** Milliseconds for which this isolate caches a key. */
const KEPT_MS = 30_000;
const MOST_KEPT = 1_000;
const DEADLINE_MS = 5_000;

interface Kept {
  key: ApiKey | null;
  until: number;
}

export interface KvKeysDeps {
  kv: KVNamespace;
  quota: Env['QUOTA'];
  clock: Clock;
}

/** Finds API keys in KV. Counts requests and tokens of a key with limits in its Durable Object. */
export class KvKeys implements KeyStore, Quota {
  readonly command = 'assay keys add <name> --edge';
  readonly #deps: KvKeysDeps;
  readonly #kept = new Map<string, Kept>();
  /** SHA-256 hash of the secret of each key that was looked up. The key's Durable Object has this name. */
  readonly #hashes = new WeakMap<ApiKey, string>();

  constructor(deps: KvKeysDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the key whose secret has this SHA-256 hash (lower-case hex); null if there is none or it is revoked. Throws
   * `timeout` if KV does not answer within 5 seconds, and `ValiError` if the stored key is invalid. The time that this
   * takes does not reveal the secret.
   */
  async find(sha256: string): Promise<ApiKey | null> {
    const now = this.#deps.clock.now();
    const kept = this.#kept.get(sha256);
    if (kept && now < kept.until) return kept.key;
    const stored = await inTime(this.#deps.kv.get(sha256, { type: 'json', cacheTtl: KV_CACHE_S }));
    const key = stored === null ? null : apiKey(v.parse(KvKey, stored));
    if (key) this.#hashes.set(key, sha256);
    const [oldest] = this.#kept.size >= MOST_KEPT ? this.#kept.keys() : [];
    if (oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.delete(sha256);
    this.#kept.set(sha256, { key, until: now + KEPT_MS });
    return key;
  }

  async take(key: ApiKey, used: QuotaAmount = { requests: 1 }, model?: string): Promise<void> {
    for (const unit of QUOTA_UNITS) {
      for (const { object, models, perMinute, amount } of this.#counted(key, unit, used[unit], model)) {
        const retryAfterSeconds = await inTime(object.take(unit, perMinute, amount));
        if (retryAfterSeconds) throw rateLimited(retryAfterSeconds, unit, models);
      }
    }
  }

  async giveBack(key: ApiKey, unused: QuotaAmount, model?: string): Promise<void> {
    for (const unit of QUOTA_UNITS) {
      for (const { object, perMinute, amount } of this.#counted(key, unit, unused[unit], model))
        await inTime(object.giveBack(unit, perMinute, amount));
    }
  }

  /** Returns what to count, each with the object that counts it: one for the key, and one for each other limit. */
  #counted(key: ApiKey, unit: QuotaUnit, amount = 0, model?: string) {
    const sha256 = this.#hashes.get(key);
    if (sha256 === undefined || amount === 0) return [];
    return limitsOf(key, unit, model).map(({ models, perMinute }) => {
      const name = models === '' ? sha256 : `${sha256} ${models}`;
      return { object: this.#deps.quota.getByName(name), models, perMinute, amount };
    });
  }
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return withTimeout(
    work,
    DEADLINE_MS,
    () => new AssayError('timeout', 'The store of the API keys did not answer. Try again.'),
  );
}

function apiKey({ revoked, ...key }: v.InferOutput<typeof KvKey>): ApiKey | null {
  return revoked ? null : key;
}
