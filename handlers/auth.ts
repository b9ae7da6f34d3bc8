import { AssayError } from '../lib/errors.ts';
import { type KeyStore, mayUse } from '../lib/keys.ts';
import type { AppContext, AppMiddleware } from './context.ts';

/** Refuses a call without a known Bearer key (401), before anything of the request is read. */
export function requireKey(keys: KeyStore | undefined): AppMiddleware {
  return async (c, next) => {
    const [scheme, secret] = (c.req.header('authorization') ?? '').trim().split(/ +/, 2);
    if (scheme?.toLowerCase() !== 'bearer' || !secret) {
      throw new AssayError('missing_api_key', 'Send the header "Authorization: Bearer <API_KEY>".');
    }
    const key = await keys?.find(await sha256(secret));
    if (!key) throw new AssayError('invalid_api_key', 'This API key is not known here. Check it, or make a new one.');
    c.set('key', key);
    await next();
  };
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Refuses a model that the caller's key may not use (403). Where no key is needed, every model may be used. */
export function checkRight(c: AppContext, model: string): void {
  const key = c.get('key');
  if (!key || mayUse(key, model)) return;
  throw new AssayError('model_not_allowed', `The key ${key.name} may not use this model. Ask for a key that may.`, {
    param: 'model',
  });
}
