import { writeSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { RequestLog } from '../../handlers/context.ts';
import { errorStatus } from '../../lib/error-status.ts';
import { AssayError } from '../../lib/errors.ts';
import { systemCode } from '../../runtime/store/disk-error.ts';
import type { LogLevel } from './config.ts';

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

/** Fields that are shown in another form, or that people do not need at a terminal. */
const OMITTED = new Set(['level', 'time', 'msg', 'requestId', 'pid', 'err']);

/**
 * Returns a JSON line of the log as a line for people: the time, the level if it is not `info`, the message, and its
 * fields. An error's stack follows on further lines. Returns any other text unchanged.
 */
export function readableLine(line: string): string {
  const record = parsed(line);
  if (!record) return line;
  const { level, time, msg, err } = record;
  const name = pino.levels.labels[Number(level)] ?? '';
  const clock = new Date(String(time)).toLocaleTimeString('en-GB');
  const fields = Object.entries(record).flatMap(([key, value]) => (OMITTED.has(key) ? [] : fieldsOf(key, value)));
  const parts = [clock, ...(name === 'info' ? [] : [name.toUpperCase()]), String(msg), ...fields];
  return `${parts.join(' ')}${stackOf(err)}\n`;
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    // A cast: an object has string keys.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/**
 * Formats a field as `key=value`: an object as one such text for each member, a list with commas, none if it is empty.
 */
function fieldsOf(key: string, value: unknown): string[] {
  if (Array.isArray(value)) return value.length > 0 ? [`${key}=${value.map(shown).join(',')}`] : [];
  if (typeof value !== 'object' || value === null) return [`${key}=${shown(value)}`];
  return Object.entries(value).flatMap(([member, inner]) => fieldsOf(`${key}.${member}`, inner));
}

/** Formats a value on one line, without control characters, which could change the terminal. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 100) / 100);
  if (typeof value !== 'string') return JSON.stringify(value);
  return /^[\w./:@+-]+$/u.test(value) ? value : JSON.stringify(stripVTControlCharacters(value));
}

function stackOf(err: unknown): string {
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack) : '';
  return stack === '' ? '' : `\n  ${stripVTControlCharacters(stack).replaceAll('\n', '\n  ')}`;
}

/**
 * Maximum total size in bytes of the lines that wait because standard error cannot be written. Further lines are
 * dropped and counted. A single line may be longer, because with `ASSAY_LOG_PROMPTS` it contains a prompt.
 */
const MAX_WAITING = 1024 * 1024;
const RETRY_MS = 10;
/** Milliseconds by which unwritten lines may delay the end of the process. */
const LAST_MS = 500;

/**
 * Returns a log destination for standard error that never throws and never blocks while the process runs. If the disk
 * is full or nothing reads the output, Pino's own destination throws, blocks, or (with `sync: false`) keeps the process
 * alive. Lines are written at once if possible, because a crash would lose waiting ones. Those that still wait when the
 * process ends delay its end by at most `LAST_MS`.
 */
function standardError(): DestinationStream {
  let waiting: Buffer[] = [];
  let bytes = 0;
  let dropped = 0;
  let retry: NodeJS.Timeout | undefined;

  function add(line: Buffer): void {
    waiting.push(line);
    bytes += line.length;
  }

  function flush(): void {
    clearTimeout(retry);
    retry = undefined;
    try {
      for (let line = waiting[0]; line; line = waiting[0]) {
        // Node makes a pipe or socket non-blocking when `process.stderr` is first used.
        const written = writeSync(process.stderr.fd, line);
        bytes -= written;
        if (written < line.length) waiting[0] = line.subarray(written);
        else waiting.shift();
        if (waiting.length === 0 && dropped > 0) {
          add(dropNotice(dropped));
          dropped = 0;
        }
      }
    } catch (error) {
      if (systemCode(error) === 'EAGAIN') retry = setTimeout(flush, RETRY_MS).unref();
      else {
        dropped += waiting.length;
        waiting = [];
        bytes = 0;
      }
    }
  }

  process.on('exit', () => {
    const last = performance.now() + LAST_MS;
    for (flush(); waiting.length > 0 && performance.now() < last; flush()) pause(10);
  });

  return {
    write(text) {
      const line = Buffer.from(text);
      if (bytes > 0 && bytes + line.length > MAX_WAITING) dropped++;
      else add(line);
      if (!retry) flush();
    },
  };
}

function dropNotice(dropped: number): Buffer {
  const line = { level: pino.levels.values.warn, time: new Date().toISOString(), dropped, msg: 'log lines dropped' };
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Blocks the thread. Call it only at the end of the process, when nothing else runs. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
