import { expect, test } from 'vitest';
import { isLoopback } from './loopback.ts';

test.each([
  ['localhost', true],
  ['LOCALHOST', true],
  ['127.0.0.1', true],
  ['127.255.0.9', true],
  ['::1', true],
  ['0:0:0:0:0:0:0:1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['128.0.0.1', false],
  ['::2', false],
  ['localhost.example', false],
  ['127.0.0.1.example', false],
])('%s: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
