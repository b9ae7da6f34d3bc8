import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { AttemptRecord } from './forward/attempt-log.ts';

/** Attempts of requests that have not ended, by request id. Some requests never end, because their caller left. */
const attempts = new Map<string, AttemptRecord[]>();
/** Most requests in `attempts`; the oldest is dropped beyond that. */
const MOST_OPEN = 1_000;

/**
 * Logs an attempt: in the line of its request or, for a chat, in a line of its own, because a stream ends after its
 * request has been logged.
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

/** Writes one JSON line for each request, for `wrangler tail` and Workers Logs. No prompts, answers or keys. */
export function logRequest(record: RequestRecord): void {
  // The line of the request is enough.
  if (record.event === 'stream_ended') return;
  const ended = attempts.get(record.requestId);
  attempts.delete(record.requestId);
  write({ ...withError(record), ...(ended ? { attempts: ended.map(fieldsOf) } : {}) });
}

/** Reports something that an operator must fix. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  console.error(message);
}

/** Returns the fields of an attempt's log line. The upstream's name is under `box`, the word of the configuration. */
function fieldsOf({ requestId: _, kind: __, upstream, ...attempt }: AttemptRecord): object {
  return withError({ box: upstream, ...attempt });
}

/** Writes a line after the response has been returned, so that no caller waits for the log. */
function write(line: object): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  waitUntil(systemClock.sleep(0).then(() => console.log(JSON.stringify(line))));
}

function withError<T extends { error?: unknown }>({ error, ...rest }: T): object {
  return error === undefined ? rest : { ...rest, error: errorFields(error) };
}

/** Names of the errors that JSON.parse and Valibot throw. Their messages quote the input, so they are not logged. */
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
