import { type Call, PRIORITIES, type Priority } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import { mayUse, type Quota } from '../lib/keys.ts';
import { SESSION_HEADER } from '../lib/prompt/affinity.ts';
import { keepAliveMs as keepAliveMillis } from '../lib/schema/keep-alive.ts';
import type { AppContext } from './context.ts';

/** Name of the request header that states a request's priority (docs/interface.md, D-34). */
export const PRIORITY_HEADER = 'assay-priority';
/**
 * Headers with which an edge names its own callers to a box: the caller, who gets a share of the engine of its own, and
 * the scope of its cached prompts. Only a key with the scope `admin` gets further shares by naming callers.
 */
export const CALLER_HEADER = 'assay-caller';
export const CACHE_SCOPE_HEADER = 'assay-cache-scope';
/** Name of the header with which an edge passes on the `keep_alive` of a request: a duration, or -1. */
export const KEEP_ALIVE_HEADER = 'assay-keep-alive';

/**
 * Returns the `Call` that a backend receives with a request.
 *
 * @param quota counts the tokens of the request against the caller's key; without it, nothing is counted
 * @param options the signal that aborts when the caller disconnects, and the `keep_alive` of the request
 * @throws AssayError `invalid_value` if the header `assay-priority` has an unknown priority or one that the caller's
 *   key does not allow
 */
export function callOf(
  c: AppContext,
  quota: Quota | undefined,
  { signal = c.req.raw.signal, keepAlive }: { signal?: AbortSignal; keepAlive?: unknown } = {},
): Call {
  const priority = priorityOf(c);
  const trace = c.get('trace');
  const key = c.get('key');
  const keepAliveMs = keepAliveMillis(keepAlive ?? c.req.header(KEEP_ALIVE_HEADER));
  let counted: { requests: number; tokens: number; model: string | undefined } | null = null;
  return {
    requestId: c.get('requestId'),
    ...(trace ? { trace } : {}),
    ...(priority ? { priority } : {}),
    ...callerOf(c),
    ...sessionOf(c),
    ...(key ? { allows: (model: string) => mayUse(key, model) } : {}),
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
    signal,
    async admit(tokens = 0, model) {
      // The request itself was counted before its model was known: it counts again only for limits of some models.
      const requests = key?.limits && model !== undefined ? 1 : 0;
      if (!key || (requests === 0 && key.tokensPerMinute === undefined)) return;
      await quota?.take(key, { requests, tokens }, model);
      counted = { requests, tokens, model };
    },
    async recount(tokens) {
      if (!counted) return;
      const { model, ...before } = counted;
      const requests = tokens === 0 ? 0 : before.requests;
      counted = { requests, tokens, model };
      const unused = { requests: before.requests - requests, tokens: before.tokens - tokens };
      if (key && (unused.requests !== 0 || unused.tokens !== 0)) await quota?.giveBack?.(key, unused, model);
    },
  };
}

/** Returns who sent a request and the scope of its cached prompts. Callers without a key have neither. */
function callerOf(c: AppContext): Pick<Call, 'caller' | 'cacheScope'> {
  const key = c.get('key');
  const [caller, scope] = [CALLER_HEADER, CACHE_SCOPE_HEADER].map((name) => named(c, name));
  if (!key) return {};
  return {
    caller: caller === undefined || !key.scopes.includes('admin') ? key.name : `${key.name}/${caller}`,
    cacheScope: `${key.sharesCache ? 'shared' : `key ${key.name}`}${scope === undefined ? '' : `/${scope}`}`,
  };
}

/** Returns the session. Gateways set this header, too, so a value that cannot be one is ignored. */
function sessionOf(c: AppContext): Pick<Call, 'session'> {
  const session = c.req.header(SESSION_HEADER);
  return session !== undefined && /^[\x20-\x7e]{1,256}$/u.test(session) ? { session } : {};
}

/** Returns the value of a header by which an edge names its callers. */
function named(c: AppContext, name: string): string | undefined {
  const value = c.req.header(name);
  if (value === undefined || /^[\x20-\x7e]{1,256}$/u.test(value)) return value;
  throw refused(`The header ${name} must have 1 to 256 printable characters.`, name);
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

function refused(message: string, param = PRIORITY_HEADER): AssayError {
  return new AssayError('invalid_value', message, { param });
}
