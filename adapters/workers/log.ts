import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { VisitRecord } from './forward/visit-log.ts';

/** Visits whose request has not ended, by its id. Some requests never end, as their caller left. */
const visits = new Map<string, VisitRecord[]>();
const MOST_OPEN = 1_000;

/** Visits to boxes go into the line of their request; those of a chat have lines of their own, as a stream ends after its request. */
export function logVisit(visit: VisitRecord): void {
  const { requestId, kind } = visit;
  if (kind === 'chat') {
    write({ event: 'visits', requestId, visits: [visited(visit)] });
    return;
  }
  const [oldest] = visits.size >= MOST_OPEN ? visits.keys() : [];
  if (oldest !== undefined) visits.delete(oldest);
  visits.set(requestId, [...(visits.get(requestId) ?? []), visit]);
}

/** One JSON line for each request, for `wrangler tail` and Workers Logs. No prompts, answers or keys. */
export function logRequest(record: RequestRecord): void {
  const ended = visits.get(record.requestId);
  visits.delete(record.requestId);
  write({ ...withError(record), ...(ended ? { visits: ended.map(visited) } : {}) });
}

/** What an operator has to mend. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  console.error(message);
}

function visited({ requestId: _, kind: __, ...visit }: VisitRecord): object {
  return withError(visit);
}

/** When the response has been handed over, so that no caller waits for the log. */
function write(line: object): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  waitUntil(systemClock.sleep(0).then(() => console.log(JSON.stringify(line))));
}

function withError({ error, ...rest }: { error?: unknown }): object {
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
