import { stripVTControlCharacters } from 'node:util';
import { pino } from 'pino';

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
