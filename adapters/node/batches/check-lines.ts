import { setImmediate, setTimeout } from 'node:timers/promises';
import { AssayError } from '../../../lib/errors.ts';
import { membersOf } from '../../../lib/json/members.ts';
import { excessOf, MAX_DEPTH, MAX_PARTS } from '../../../lib/json/scan.ts';
import type { BatchError } from '../../../lib/schema/batches.ts';
import { lines } from '../rows/read-rows.ts';

/** Maximum number of requests of a batch, as OpenAI allows it. */
export const MOST_LINES = 50_000;
const MOST_ERRORS = 100;
const MOST_ID_BYTES = 256;
/** Length of a line in bytes, or characters, that takes long. */
const LONG = 1024 * 1024;

/** Represents a request of a batch. */
export interface BatchLine {
  /** Number of its line in the file, from 1. */
  line: number;
  customId: string;
  /** JSON text of the body. */
  body: string;
}

/**
 * Reads the requests of a file, which `checkLines` has accepted, but those of the lines in `except`. Other work has a
 * turn before each, because lines may be refused faster than they are read.
 */
export async function* readLines(file: string, except: ReadonlySet<number>): AsyncGenerator<BatchLine> {
  let line = 0;
  for await (const bytes of lines(file)) {
    line++;
    if (except.has(line)) continue;
    const begin = performance.now();
    const text = bytes?.toString('utf8').trim() ?? '';
    if (text === '') continue;
    const members = membersOf(text);
    const one = { line, customId: JSON.parse(members.get('custom_id') ?? '""'), body: members.get('body') ?? '{}' };
    await turn(text.length, begin);
    yield one;
  }
}

/** Gives other requests a turn, and as much time as a long line took since `begin`. */
function turn(length: number, begin: number): Promise<unknown> {
  return length > LONG ? setTimeout(performance.now() - begin) : setImmediate();
}

/** Returns the number of requests of a file, and what is wrong with it: nothing if it can be answered. */
export async function checkLines(file: string, endpoint: string): Promise<{ total: number; errors: BatchError[] }> {
  const errors: BatchError[] = [];
  const seen = new Set<string>();
  let [line, total] = [0, 0];
  for await (const bytes of lines(file)) {
    line++;
    const isEmpty = bytes !== null && bytes.length <= 2 && bytes.toString().trim() === '';
    if (!isEmpty) total++;
    if (total > MOST_LINES || line > 2 * MOST_LINES) {
      const message = `A batch may have ${MOST_LINES} requests, and as many empty lines.`;
      errors.push({ code: 'too_many_tasks', line, message, param: null });
      break;
    }
    const begin = performance.now();
    const wrong = isEmpty ? null : problemOf(bytes, endpoint, seen);
    if (bytes && bytes.length > LONG) await turn(bytes.length, begin);
    if (wrong) errors.push({ ...wrong, line });
    if (errors.length === MOST_ERRORS) break;
  }
  if (total === 0) errors.push({ code: 'empty_file', line: null, message: 'The file has no requests.', param: null });
  return { total, errors };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function problemOf(bytes: Buffer | null, endpoint: string, seen: Set<string>): Omit<BatchError, 'line'> | null {
  const wrong = (code: string, message: string, param: string | null = null) => ({ code, message, param });
  if (bytes === null) return wrong('invalid_json_line', 'The line is too long.');
  let value: Record<string, unknown>;
  try {
    const text = utf8.decode(bytes);
    if (excessOf(text))
      return wrong('invalid_json_line', `The line has more than ${MAX_PARTS} members or ${MAX_DEPTH} levels.`);
    value = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new AssayError('invalid_type', 'no object');
  } catch {
    return wrong('invalid_json_line', 'The line is not a JSON object in UTF-8.');
  }
  const { custom_id: id, method, url, body } = value;
  if (typeof id !== 'string' || id === '' || Buffer.byteLength(id) > MOST_ID_BYTES) {
    return wrong('missing_required_parameter', `custom_id must be a text of 1 to ${MOST_ID_BYTES} bytes.`, 'custom_id');
  }
  if (seen.has(id)) return wrong('duplicate_custom_id', `The custom_id ${id} is used twice.`, 'custom_id');
  seen.add(id);
  if (method !== 'POST') return wrong('invalid_method', 'method must be POST.', 'method');
  if (url !== endpoint)
    return wrong('mismatched_endpoint', `url must be the endpoint of the batch, ${endpoint}.`, 'url');
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return wrong('missing_required_parameter', 'body must be an object.', 'body');
  }
  if ('stream' in body && body.stream === true)
    return wrong('invalid_request', 'Answers cannot be streamed.', 'body.stream');
  return null;
}
