import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { AttemptRecord } from './forward/attempt-log.ts';

/** Attempts whose request has not ended, by its id. Some requests never end, as their caller left. */
const attempts = new Map<string, AttemptRecord[]>();
const MOST_OPEN = 1_000;

/** Attempts to upstreams go into the line of their request; those of a chat have lines of their own, as a stream ends after its request. */
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

/** One JSON line for each request, for `wrangler tail` and Workers Logs. No prompts, answers or keys. */
export function logRequest(record: RequestRecord): void {
  const ended = attempts.get(record.requestId);
  attempts.delete(record.requestId);
  write({ ...withError(record), ...(ended ? { attempts: ended.map(fieldsOf) } : {}) });
}

/** What an operator has to mend. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  console.error(message);
}

/** Log lines say `box`, the word of the configuration. */
function fieldsOf({ requestId: _, kind: __, upstream, ...attempt }: AttemptRecord): object {
  return withError({ box: upstream, ...attempt });
}

/** When the response has been handed over, so that no caller waits for the log. */
function write(line: object): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  waitUntil(systemClock.sleep(0).then(() => console.log(JSON.stringify(line))));
}

function withError<T extends { error?: unknown }>({ error, ...rest }: T): object {
  return error === undefined ? rest : { ...rest, error: errorFields(error) };
}

/** Errors of JSON.parse and Valibot: their messages quote what they read. */
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
