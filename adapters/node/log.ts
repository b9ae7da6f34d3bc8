import { type DestinationStream, type Logger, pino } from 'pino';
import type { RequestLog } from '../../handlers/context.ts';
import { errorStatus } from '../../lib/error-status.ts';
import { AssayError } from '../../lib/errors.ts';
import type { LogLevel } from './log-level.ts';
import { readableLine } from './readable-line.ts';
import { standardError } from './standard-error.ts';

let stderr: DestinationStream | undefined;

/**
 * Creates a logger that writes one JSON object a line to standard error; on a terminal, a line for people. Logging
 * never throws and never blocks, even if nothing reads the output.
 */
export function createLog(level: LogLevel): Logger {
  stderr ??= standardError();
  const output = stderr;
  const destination = process.stderr.isTTY ? { write: (line: string) => output.write(readableLine(line)) } : output;
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/** Paths that monitors and the playground request every few seconds. Successes are logged at level `debug`. */
const WATCHED: ReadonlySet<string> = new Set(['/health', '/currentmodel', '/metrics']);

/**
 * Returns a function that writes one line to `log` for each record of a request: as an error for a status of 500 or
 * more or a stream that failed. If the server is at fault, the line has the error's cause. It never has the caller's
 * input.
 */
export function requestLog(log: Logger): RequestLog {
  return ({ event, error, route: _, ...record }) => {
    const code = error instanceof AssayError ? error.code : undefined;
    const ours = error !== undefined && (code === undefined || errorStatus(code, 'models')?.type === 'server_error');
    const line = { ...record, ...(code === undefined ? {} : { code }), ...(ours ? { err: causeOf(error) } : {}) };
    const watched = WATCHED.has(record.path) && record.status < 400;
    // The end of a stream matters only for debugging: its request has a line already.
    if (event === 'stream_ended' || watched) log.debug(line, event);
    else if (event === 'stream_failed' || record.status >= 500) log.error(line, event);
    else log.info(line, event);
  };
}

/** Returns the cause of an `AssayError` if it has one, else the error itself. */
function causeOf(error: unknown): unknown {
  return error instanceof AssayError && error.cause !== undefined ? error.cause : error;
}
