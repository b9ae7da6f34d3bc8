/** An API key as a request's rights are read from it. The secret itself is never kept, only its SHA-256 hash. */
export interface ApiKey {
  name: string;
  /** Patterns of the models it may use: a model id, or one with `*` for any run of characters. */
  models: readonly string[];
  /** Absent: no limit. */
  requestsPerMinute?: number;
  /** `admin` may load, unload, download and delete where the model server wants a key, and on a named box of the edge. */
  scopes: readonly 'admin'[];
}

/** An API key and the hash that finds it. */
export interface StoredKey extends ApiKey {
  /** SHA-256 of the secret's UTF-8 bytes, lower-case hex. */
  sha256: string;
}

/** Where keys are kept: a file in the Node host, a secret at the edge, a list in tests. */
export interface KeyStore {
  /** The key with this hash (SHA-256 of the secret's UTF-8 bytes, lower-case hex), or null. Compares in constant time. */
  find(sha256: string): Promise<ApiKey | null>;
}

/** Counts requests against a key's `requestsPerMinute`. */
export interface Quota {
  /** Takes one request; throws `rate_limited` with the seconds to wait. */
  take(key: ApiKey): Promise<void>;
}

/** A key store over a list. Every key is compared to its end, so the time tells nothing of where a hash differs. */
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

/** The hash under which a secret is kept. */
export async function hashSecret(secret: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Whether a key may use a model: one of its patterns is the id, or matches it with `*` for any run of characters. */
export function mayUse(key: ApiKey, model: string): boolean {
  return key.models.some((pattern) => matches(pattern, model));
}

/** Takes each piece between the stars at its earliest place, which is always right, and linear in the text for each piece. */
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
