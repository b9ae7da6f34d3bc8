import { AssayError } from '../lib/errors.ts';
import { hashSecret, type KeyStore, mayUse, type Quota } from '../lib/keys.ts';
import type { AppContext, AppMiddleware } from './context.ts';

/**
 * Returns middleware that requires `Authorization: Bearer <API key>`, or the key in Google's header `x-goog-api-key`,
 * and sets the context variable `key`. Before the body is read, it throws `missing_api_key` (401) if neither header has
 * a key, and `invalid_api_key` (401) if the key is not in `keys`. If `keys` is undefined, every key is unknown.
 */
export function requireKey(keys: KeyStore | undefined): AppMiddleware {
  // Caches the hashes of secrets, because hashing takes longer than all other checks of a request together. Only
  // secrets of known keys are cached, so strangers cannot fill the cache.
  const hashes = new Map<string, string>();
  return async (c, next) => {
    const { headers } = c.req.raw;
    const secret = headers.get('x-goog-api-key') ?? secretOf(headers.get('authorization'));
    const hash = hashes.get(secret) ?? (await hashSecret(secret));
    const key = await keys?.find(hash);
    if (!key) {
      hashes.delete(secret);
      throw new AssayError('invalid_api_key', `This API key is not known here. Check it, or ${newKey(keys)}.`);
    }
    hashes.set(secret, hash);
    c.set('key', key);
    await next();
  };
}

/**
 * Returns the secret of `Bearer <secret>`, with the scheme in any letter case (RFC 9110, section 11.1). Throws
 * `missing_api_key` if there is none.
 */
export function secretOf(authorization: string | null): string {
  const secret = /^bearer +(.+)$/i.exec(authorization ?? '')?.[1];
  if (secret !== undefined) return secret;
  const sent =
    authorization === null
      ? ''
      : ' The header of this request has no key after "Bearer". Check that the variable that should hold the key is set.';
  throw new AssayError('missing_api_key', `Send the header "Authorization: Bearer <API_KEY>".${sent}`);
}

/**
 * Returns middleware that counts the request against the quota of the caller's key before its body is read, so a key
 * that has used up its quota causes no work. Refused requests count, too, except those that the server was too busy
 * for, and those for a model that the key may not use. Must run after `requireKey`.
 */
export function takeQuota(quota: Quota | undefined): AppMiddleware {
  return async (c, next) => {
    const key = c.get('key');
    if (key) await quota?.take(key);
    await next();
    const free = c.error instanceof AssayError && ['overloaded', 'model_not_allowed'].includes(c.error.code);
    if (key && free) await quota?.giveBack?.(key, { requests: 1 });
  };
}

/**
 * Returns middleware that throws `model_not_allowed` (403) unless the caller's key has the admin scope. Guards the
 * operations that change what the machine stores and runs; must run after `requireKey`.
 */
export function requireAdmin(keys: KeyStore | undefined): AppMiddleware {
  return (c, next) => {
    const key = c.get('key');
    if (key?.scopes.includes('admin')) return next();
    const lack = `The key ${key?.name} lacks the admin scope. To get one that has it, ${newKey(keys, ' --admin')}.`;
    throw new AssayError('model_not_allowed', lack);
  };
}

function newKey(keys: KeyStore | undefined, flags = ''): string {
  const { command } = keys ?? {};
  return command === undefined ? 'ask whoever runs this server' : `make a new one with "${command}${flags}"`;
}

/**
 * Throws `model_not_allowed` (403) if the caller's key may not use the model. A request without a key, on a route that
 * requires none, may use every model.
 */
export function checkRight(c: AppContext, model: string): void {
  const key = c.get('key');
  if (!key || mayUse(key, model)) return;
  throw new AssayError('model_not_allowed', `The key ${key.name} may not use this model. Ask for a key that may.`, {
    param: 'model',
  });
}

/**
 * Notes which model answered a request, for the log and the metrics, and throws as `checkRight` does: a request may
 * omit the model, and then only its answer names it.
 */
export function noteModel(c: AppContext, model: string): void {
  c.set('model', model);
  checkRight(c, model);
}
