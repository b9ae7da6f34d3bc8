import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import type { Metrics, Usage } from '../../lib/backend.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Outcome } from './upstreams/fleet.ts';

/** Attempts of running requests, by request id. A request whose caller left may never be removed. */
const attempts = new Map<string, AttemptRecord[]>();
/** Largest number of requests in `attempts`; beyond it, the oldest is dropped. */
const MOST_OPEN = 1_000;

/**
 * Logs an attempt at an upstream. An attempt for tasks becomes part of its request's line (`logRequest`). One for a
 * chat gets a line of its own, because a stream ends after its request was logged.
 */
export function logAttempt(attempt: AttemptRecord): void {
  const { requestId, kind } = attempt;
  if (kind === 'chat') {
    write({ event: 'attempts', requestId, attempts: [fieldsOf(attempt)] });
    return;
  }
  const [oldest] = attempts.size >= MOST_OPEN ? attempts.keys() : [];
  if (oldest !== undefined) attempts.delete(oldest);
  attempts.set(requestId, [...(attempts.get(requestId) ?? []), attempt]);
}

/**
 * Writes a request's JSON line, which `wrangler tail` and Workers Logs show. The line never has prompts, answers or
 * keys. Ignores `stream_ended`.
 */
export function logRequest(record: RequestRecord): void {
  // The request of the stream has a line already.
  if (record.event === 'stream_ended') return;
  const ended = attempts.get(record.requestId);
  attempts.delete(record.requestId);
  write({ ...withError(record), ...(ended ? { attempts: ended.map(fieldsOf) } : {}) });
}

/** Writes a text line about an error that the operator must fix. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  console.error(message);
}

/** Returns the fields of an attempt in the log. The upstream is called `box` there, as in the configuration. */
function fieldsOf({ requestId: _, kind: __, upstream, ...attempt }: AttemptRecord): object {
  return withError({ box: upstream, ...attempt });
}

/** Writes a line once the response has been returned, so logging delays no caller. */
function write(line: object): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  waitUntil(systemClock.sleep(0).then(() => console.log(JSON.stringify(line))));
}

function withError<T extends { error?: unknown }>({ error, ...rest }: T): object {
  return error === undefined ? rest : { ...rest, error: errorFields(error) };
}

/** Names of errors (of JSON.parse and Valibot) whose messages are not logged, because they quote the input. */
const QUOTING = new Set(['SyntaxError', 'ValiError']);

function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, cause } = error;
  return {
    name,
    ...('code' in error ? { code: error.code } : {}),
    ...(QUOTING.has(name) ? {} : { message }),
    ...(cause === undefined ? {} : { cause: errorFields(cause) }),
  };
}

/** Holds the log record of one attempt: one request sent to one upstream. */
export interface AttemptRecord {
  requestId: string;
  kind: 'tasks' | 'chat';
  upstream: string;
  outcome: Outcome;
  /** Milliseconds from sending the request to the end of the attempt. */
  ms: number;
  usage?: Usage;
  metrics?: Metrics;
  /** Error that ended the attempt; absent if there was none. */
  error?: unknown;
}

export type AttemptLog = (record: AttemptRecord) => void;
