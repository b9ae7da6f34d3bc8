import { expect, test } from 'vitest';
import { mayUse } from './keys.ts';

test.each([
  ['*', 'a/b', true],
  ['a/b', 'a/b', true],
  ['a/b', 'a/bc', false],
  ['a/*', 'a/b', true],
  ['a/*', 'ab/b', false],
  ['*/b', 'a/b', true],
  ['*/b', 'a/bb', false],
  ['a*c*e', 'a-c-e', true],
  ['a*c*e', 'a-e-c', false],
  ['ab*ba', 'aba', false],
  ['', 'a/b', false],
])('the pattern %s and the model %s: %s', (pattern, model, expected) => {
  expect(mayUse({ name: 'k', models: ['none/such', pattern], scopes: [] }, model)).toBe(expected);
});
