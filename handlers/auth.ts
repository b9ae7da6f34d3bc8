import { AssayError } from '../lib/errors.ts';
import type { KeyStore } from '../lib/keys.ts';
import type { AppMiddleware } from './context.ts';

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
