import { type Call, PRIORITIES, type Priority } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import type { Quota } from '../lib/keys.ts';
import type { AppContext } from './context.ts';

/** Name of the request header that states a request's priority (docs/interface.md, D-34). */
export const PRIORITY_HEADER = 'assay-priority';

/**
 * Returns the `Call` that a backend receives with a request.
 *
 * @param quota counts the request against the caller's key when the backend calls `admit`; without it, nothing is
 *   counted
 * @param signal aborts when the caller disconnects
 * @throws AssayError `invalid_value` if the header `assay-priority` has an unknown priority or one that the caller's
 *   key does not allow
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

/**
 * Returns the priority that the header `assay-priority` states, or else the key's; undefined if neither has one. The
 * header may lower a key's priority, never raise it.
 */
function priorityOf(c: AppContext): Priority | undefined {
  const key = c.get('key');
  const header = c.req.header(PRIORITY_HEADER);
  if (header === undefined) return key?.priority;
  const priority = PRIORITIES.find((one) => one === header);
  if (!priority) throw refused(`The header ${PRIORITY_HEADER} must be ${PRIORITIES.join(' or ')}.`);
  if (priority === 'batch' || key?.priority !== 'batch') return priority;
  throw refused(
    `The key ${key.name} is for batch requests. Omit the header ${PRIORITY_HEADER}, or use a key without this limit.`,
  );
}

function refused(message: string): AssayError {
  return new AssayError('invalid_value', message, { param: PRIORITY_HEADER });
}
