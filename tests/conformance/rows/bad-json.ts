import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row, RowRequest } from '../row.ts';

const paths = ['/v1/tasks', '/decide', '/extract'];
const text = '{"model":"assay/starter","context":"x","tasks":[{"type":"decide","name":"a","question":"q"}]}';
const bytes = (...parts: (string | number[])[]) =>
  new Uint8Array(parts.flatMap((part) => (typeof part === 'string' ? [...new TextEncoder().encode(part)] : part)));

const refused = (name: string, body: string | Uint8Array<ArrayBuffer>): readonly Row[] =>
  paths.map((path) => ({
    name: `${path}: ${name}`,
    request: { path, body },
    expect: { status: 400, error: 'malformed_json' as const, calls: [] },
  }));
const told = (
  name: string,
  request: Omit<RowRequest, 'path'>,
  status: number,
  code: ErrorCode,
  param?: string,
): Row => ({
  name,
  request: { path: '/v1/tasks', ...request },
  expect: { status, error: { code, ...(param ? { param } : {}) }, calls: [] },
});
const accepted = (name: string, request: Omit<RowRequest, 'path'>): Row => ({
  name,
  request: { path: '/v1/tasks', ...request },
  expect: { calls: ['runTasks', 'admit'] },
});
const withField = (member: string) => `${text.slice(0, -1)},${member}}`;
const MIB = 1024 * 1024;
const padded = (length: number) => text.replace('"x"', `"${'x'.repeat(length - text.length + 1)}"`);

/** docs/interface.md, D-10. */
export const badJson: readonly Row[] = [
  ...refused('an empty body', ''),
  ...refused('an invalid byte', bytes('{"model":"', [0xff], '"}')),
  ...refused('a cut UTF-8 sequence', bytes('{"model":"', [0xe2, 0x82], '"}')),
  ...refused('an encoded surrogate', bytes('{"model":"', [0xed, 0xa0, 0x80], '"}')),
  ...refused('half a surrogate pair', '{"model":"\\ud83d"}'),
  ...refused('nesting of 65', `{"model":${'['.repeat(64)}${']'.repeat(64)}}`),
  ...refused('nesting of 100,000', '['.repeat(100_000) + ']'.repeat(100_000)),
  ...refused('nesting of 100,000 objects that never close', '{"a":'.repeat(100_000)),
  ...refused('a trailing comma', '{"model":"m",}'),
  ...refused('text behind the value', '{}x'),
  ...refused('NaN', '{"temperature":NaN}'),
  accepted('a byte order mark is skipped', { body: bytes([0xef, 0xbb, 0xbf], text) }),
  accepted('of a repeated key the last counts', {
    body: text.replace('{', '{"model":5,"temperature":1,').replace(/,"temperature":1/, ''),
  }),
  told(
    'of a repeated key the last counts, also when it is the bad one',
    { body: withField('"model":5') },
    422,
    'invalid_type',
    'model',
  ),
  told(
    'a number too large for a double',
    { body: withField('"temperature":1e999') },
    422,
    'invalid_value',
    'temperature',
  ),
  told(
    'a number of 400 digits',
    { body: withField(`"max_output_tokens":${'9'.repeat(400)}`) },
    422,
    'invalid_type',
    'max_output_tokens',
  ),
  told(
    '-0 is below the least max_output_tokens',
    { body: withField('"max_output_tokens":-0') },
    422,
    'invalid_value',
    'max_output_tokens',
  ),
  accepted('1.6e1 is a whole number', { body: withField('"max_output_tokens":1.6e1') }),
  told(
    'nesting of 64 is JSON, whatever it means',
    { body: withField(`"context":${'['.repeat(63)}${']'.repeat(63)}`) },
    422,
    'invalid_type',
    'context',
  ),
  told(
    '__proto__ is an unknown field',
    { body: withField('"__proto__":{"temperature":1}') },
    400,
    'unknown_field',
    '__proto__',
  ),
  accepted('chunks without a length', { chunks: [text.slice(0, 20), text.slice(20, 21), text.slice(21)] }),
  accepted('no content type', { body: text, headers: { 'content-type': null } }),
  accepted('20 MiB exactly', { body: padded(20 * MIB) }),
  told('a byte more than 20 MiB', { body: padded(20 * MIB + 1) }, 400, 'request_too_large'),
  told(
    'more than 20 MiB in chunks',
    { chunks: Array.from({ length: 22 }, () => ' '.repeat(MIB)) },
    400,
    'request_too_large',
  ),
];
