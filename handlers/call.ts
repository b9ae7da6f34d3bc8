import { type Call, PRIORITIES, type Priority } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import type { Quota } from '../lib/keys.ts';
import type { AppContext } from './context.ts';

/** Name of the request header that states a request's priority (docs/interface.md, D-34). */
export const PRIORITY_HEADER = 'assay-priority';

/**
 * Returns the context that is passed to a backend with a request. `signal` aborts when the caller leaves. Throws
 * `invalid_value` for an unknown priority.
 */
export function callOf(c: AppContext, quota: Quota | undefined, signal: AbortSignal = c.req.raw.signal): Call {
  const priority = priorityOf(c);
  const trace = c.get('trace');
  return {
    requestId: c.get('requestId'),
    ...(trace ? { trace } : {}),
    ...(priority ? { priority } : {}),
    signal,
    async admit() {
      const key = c.get('key');
      if (key) await quota?.take(key);
    },
  };
}

function priorityOf(c: AppContext): Priority | undefined {
  const value = c.req.header(PRIORITY_HEADER);
  if (value === undefined) return undefined;
  const priority = PRIORITIES.find((one) => one === value);
  if (priority) return priority;
  throw new AssayError('invalid_value', `The header ${PRIORITY_HEADER} has to be ${PRIORITIES.join(' or ')}.`, {
    param: PRIORITY_HEADER,
  });
}
