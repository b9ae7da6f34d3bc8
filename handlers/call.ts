import { type Call, PRIORITIES, type Priority } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import type { Quota } from '../lib/keys.ts';
import type { AppContext } from './context.ts';

/** Name of the request header that states a request's priority (docs/interface.md, D-34). */
export const PRIORITY_HEADER = 'assay-priority';

/**
 * Returns the context that is passed to a backend with a request. `signal` aborts when the caller leaves. Throws
 * `invalid_value` for a priority that is unknown, or that the caller's key does not allow.
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

/** Returns the priority of the header, else of the key. A header may lower a request's priority, but not raise it. */
function priorityOf(c: AppContext): Priority | undefined {
  const key = c.get('key');
  const header = c.req.header(PRIORITY_HEADER);
  if (header === undefined) return key?.priority;
  const priority = PRIORITIES.find((one) => one === header);
  if (!priority) throw refused(`The header ${PRIORITY_HEADER} has to be ${PRIORITIES.join(' or ')}.`);
  if (priority === 'batch' || key?.priority !== 'batch') return priority;
  throw refused(
    `The key ${key.name} is for batch requests. Omit the header ${PRIORITY_HEADER}, or use a key without this limit.`,
  );
}

function refused(message: string): AssayError {
  return new AssayError('invalid_value', message, { param: PRIORITY_HEADER });
}
