import { expect, it } from 'vitest';
import { readableLine } from './log.ts';

const time = new Date(2026, 10, 25, 17, 33, 20).toISOString();
const LINES: [string, object, string][] = [
  [
    'a request',
    { level: 30, time, requestId: 'r', method: 'GET', path: '/health', status: 200, ms: 2.123, msg: 'request' },
    '17:33:20 request method=GET path=/health status=200 ms=2.12\n',
  ],
  ['a warning', { level: 40, time, reason: 'disk full', msg: 'late' }, '17:33:20 WARN late reason="disk full"\n'],
  ['a list', { level: 30, time, active: ['a', 'b'], msg: 'layers' }, '17:33:20 layers active=a,b\n'],
  [
    'an object',
    { level: 30, time, inactive: { namespaces: 'no bwrap', limits: 'x' }, none: [], msg: 'layers' },
    '17:33:20 layers inactive.namespaces="no bwrap" inactive.limits=x\n',
  ],
  [
    'an error',
    { level: 50, time, err: { message: 'no', stack: 'Error: no\n    at x' }, msg: 'failed' },
    '17:33:20 ERROR failed\n  Error: no\n      at x\n',
  ],
  ['control characters', { level: 30, time, path: '/\u001b[2Jx', msg: 'request' }, '17:33:20 request path="/x"\n'],
];

it.each(LINES)('%s', (_, record, line) => {
  expect(readableLine(`${JSON.stringify(record)}\n`)).toBe(line);
});

it('other text stays as it is', () => {
  expect(readableLine('not JSON\n')).toBe('not JSON\n');
});
