/** Describes the rights of an API key. The secret itself is never kept, only its SHA-256 hash. */
export interface ApiKey {
  name: string;
  /** Patterns of the models it may use: a model id, or one with `*` for any run of characters. */
  models: readonly string[];
  /** Quota of the key; absent: no limit. */
  requestsPerMinute?: number;
  /** `admin` may load, unload, download and delete if the model server requires a key, and on a box of the edge. */
  scopes: readonly 'admin'[];
}

/** Holds an API key and the hash that identifies it. */
export interface StoredKey extends ApiKey {
  /** SHA-256 of the secret's UTF-8 bytes, lower-case hex. */
  sha256: string;
}

/** Finds keys: in a file of the Node host, in KV at the edge, in a list of a test. */
export interface KeyStore {
  /**
   * Returns the key with this hash (SHA-256 of the secret's UTF-8 bytes, lower-case hex), or null. Compares in constant
   * time.
   */
  find(sha256: string): Promise<ApiKey | null>;
}

/** Counts requests against a key's `requestsPerMinute`. */
export interface Quota {
  /** Counts one request; throws `rate_limited` with the seconds to wait. */
  take(key: ApiKey): Promise<void>;
}

/**
 * Creates a key store over a list. Every key is compared to its end, so the time does not reveal where a hash differs.
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

/** Returns the hash that a secret is stored under. */
export async function hashSecret(secret: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Tells whether a key may use a model: one of its patterns is the id, or matches it with `*` for any run of characters.
 */
export function mayUse(key: ApiKey, model: string): boolean {
  return key.models.some((pattern) => matches(pattern, model));
}

/**
 * Matches each piece between the stars at its earliest position, which is always right and takes linear time for each
 * piece.
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
