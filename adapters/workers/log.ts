import { waitUntil } from 'cloudflare:workers';
import type { RequestRecord } from '../../handlers/context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { VisitRecord } from './forward/visit-log.ts';

/**
 * One JSON line for each request and each visit to a box, for `wrangler tail` and Workers Logs. No prompts, answers or keys.
 * Written after the response has been handed over, so that no caller waits for it.
 */
export function logLine(record: RequestRecord | VisitRecord): void {
  const { error, ...rest } = record;
  const line = error === undefined ? rest : { ...rest, error: errorFields(error) };
  // biome-ignore lint/suspicious/noConsole: the console is where a Worker's log goes.
  waitUntil(systemClock.sleep(0).then(() => console.log(JSON.stringify(line))));
}

/** What an operator has to mend. */
export function logError(message: string): void {
  // biome-ignore lint/suspicious/noConsole: as above.
  console.error(message);
}

function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, cause } = error;
  const code = 'code' in error ? { code: error.code } : {};
  return { name, ...code, message, ...(cause === undefined ? {} : { cause: errorFields(cause) }) };
}
