import * as v from 'valibot';
import type { Priority } from './backend.ts';

const PerMinute = v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(1)));
/** Limits what a key may ask of the models that match a pattern, together. */
export const KeyLimit = v.object({
  models: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  requestsPerMinute: PerMinute,
  tokensPerMinute: PerMinute,
});
export type KeyLimit = v.InferOutput<typeof KeyLimit>;
/** Most limits of one key for some of its models. */
const MOST_LIMITS = 32;
export const KeyLimits = v.exactOptional(v.pipe(v.array(KeyLimit), v.maxLength(MOST_LIMITS)));

/** Describes an API key by its name and rights. The secret itself is never stored, only its SHA-256 hash. */
export interface ApiKey {
  name: string;
  /** Patterns of the models that the key may use: a model id, or one with `*` for any run of characters. */
  models: readonly string[];
  /** Maximum number of requests per minute; no limit if absent. */
  requestsPerMinute?: number;
  /** Maximum number of tokens per minute, of prompts and answers together; no limit if absent. */
  tokensPerMinute?: number;
  /** Limits for some of the models, beside those of the key as a whole. */
  limits?: readonly KeyLimit[];
  /**
   * True if the key reuses cached prompts of all other keys that have this set. Their holders can learn the beginnings
   * of one another's texts. Otherwise the key reuses its own only.
   */
  sharesCache?: boolean;
  /**
   * Priority of the key's requests; `interactive` if absent. The header `assay-priority` may lower it for one request,
   * never raise it (docs/interface.md, D-34).
   */
  priority?: Priority;
  /**
   * `admin` allows loading, unloading, downloading and deleting models on a model server that requires a key. On the
   * edge, it also opens the routes that administer upstreams.
   */
  scopes: readonly 'admin'[];
}

/** Holds an API key and the hash that identifies it. */
export interface StoredKey extends ApiKey {
  /** SHA-256 of the secret's UTF-8 bytes, lower-case hex. */
  sha256: string;
}

/** Finds API keys: in a file (Node host), in Workers KV (edge), or in a list (tests). */
export interface KeyStore {
  /** Command that makes a key, for error messages; absent: whoever runs the server makes it. */
  readonly command?: string;
  /**
   * Returns the key with this hash (SHA-256 of the secret's UTF-8 bytes, lower-case hex), or null. Compares in constant
   * time.
   */
  find(sha256: string): Promise<ApiKey | null>;
}

/** Lists what quotas count. */
export const QUOTA_UNITS = ['requests', 'tokens'] as const;
export type QuotaUnit = (typeof QUOTA_UNITS)[number];
export type QuotaAmount = Partial<Record<QuotaUnit, number>>;

/** Returns how much a key or a limit allows per minute; undefined if it has no limit. */
export function quotaOf(
  { requestsPerMinute, tokensPerMinute }: Pick<ApiKey, 'requestsPerMinute' | 'tokensPerMinute'>,
  unit: QuotaUnit,
): number | undefined {
  return unit === 'requests' ? requestsPerMinute : tokensPerMinute;
}

/**
 * Returns the limits against which an amount counts, each with the pattern of its models, empty for all: without a
 * model, the key's own; for a request to a model, those of its models, and the key's tokens. The key's requests have
 * been counted before the model was known.
 */
export function limitsOf(key: ApiKey, unit: QuotaUnit, model?: string): { models: string; perMinute: number }[] {
  const whole = model === undefined || unit === 'tokens' ? [{ ...key, models: '' }] : [];
  const some = model === undefined ? [] : (key.limits ?? []).filter(({ models }) => matches(models, model));
  return [...whole, ...some].flatMap((limit) => {
    const perMinute = quotaOf(limit, unit);
    return perMinute === undefined ? [] : [{ models: limit.models, perMinute }];
  });
}

/** Counts the requests and tokens of each key against its limits. */
export interface Quota {
  /**
   * Counts an amount, by default one request; a key without a limit is never refused. For which limits a `model`
   * counts: `limitsOf`.
   *
   * @throws AssayError `rate_limited`, with `retryAfterSeconds`, if the quota is used up
   */
  take(key: ApiKey, used?: QuotaAmount, model?: string): Promise<void>;
  /** Gives back what was counted but not used, or counts more if an amount is negative. Never refuses. */
  giveBack?(key: ApiKey, unused: QuotaAmount, model?: string): Promise<void>;
}

/**
 * Creates a key store over a list. Compares the wanted hash with every listed one, each to its end, so the time does
 * not reveal where hashes differ.
 */
export function listedKeys(keys: readonly StoredKey[]): KeyStore {
  return {
    async find(sha256) {
      let found: ApiKey | null = null;
      for (const key of keys) {
        if (isEqual(key.sha256, sha256)) found = key;
      }
      return found;
    },
  };
}

function isEqual(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

/** Returns the hash under which a secret is stored: SHA-256 of its UTF-8 bytes, in lower-case hex. */
export async function hashSecret(secret: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Tells whether a key may use a model: one of the key's patterns must match the model id. */
export function mayUse(key: ApiKey, model: string): boolean {
  return key.models.some((pattern) => matches(pattern, model));
}

/**
 * Tells whether a text matches a pattern in which `*` stands for any run of characters. Each piece between the stars is
 * matched at its earliest position, which finds a match if there is one.
 */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}
