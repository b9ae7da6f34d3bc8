import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { VisitRecord } from './forward/visit-log.ts';

/** Visits that ended in this turn of the event loop, by request. */
const ended = new Map<string, VisitRecord[]>();

/** A visit to a box goes into the line of its request; where that was or will be written another time (a stream, a retry), into its own. */
export function logVisit(visit: VisitRecord): void {
  const { requestId } = visit;
  const visits = ended.get(requestId);
  if (visits) return void visits.push(visit);
  ended.set(requestId, [visit]);
  afterwards(() => {
    const left = takeVisits(requestId);
    if (left.length > 0) write({ event: 'visits', requestId, visits: left });
  });
}

/** One JSON line for each request, for `wrangler tail` and Workers Logs. No prompts, answers or keys. */
export function logRequest(record: RequestRecord): void {
  const visits = takeVisits(record.requestId);
  afterwards(() => write({ ...withError(record), ...(visits.length > 0 ? { visits } : {}) }));
}

/** What an operator has to mend. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  console.error(message);
}

function takeVisits(requestId: string): object[] {
  const visits = ended.get(requestId) ?? [];
  ended.delete(requestId);
  return visits.map(({ requestId: _, ...visit }) => withError(visit));
}

/** When the response has been handed over, so that no caller waits for the log. */
function afterwards(work: () => void): void {
  waitUntil(systemClock.sleep(0).then(work));
}

function write(line: object): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  console.log(JSON.stringify(line));
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
