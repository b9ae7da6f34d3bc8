import type { Call } from '../lib/backend.ts';
import type { Quota } from '../lib/keys.ts';
import type { AppContext } from './context.ts';

/** Returns the context that a backend gets with a request. `signal` aborts when the caller leaves. */
export function callOf(c: AppContext, quota: Quota | undefined, signal: AbortSignal = c.req.raw.signal): Call {
  return {
    requestId: c.get('requestId'),
    signal,
    async admit() {
      const key = c.get('key');
      if (key) await quota?.take(key);
    },
  };
}
