import { expect, test } from 'vitest';
import { continuationOf } from './prompt-lookup.ts';

test.each([
  ['the last place where the last token was', [1, 2, 1, 3, 1], { matched: 1, from: 3 }],
  ['rather where more tokens before it are the same', [5, 1, 2, 1, 3, 5, 1], { matched: 2, from: 2 }],
  ['text that repeats itself', [7, 7, 7], { matched: 2, from: 2 }],
  ['a token that was never there', [1, 2, 3], null],
  ['no text', [], null],
  ['at most eight tokens are compared', [...Array(40).keys(), ...Array(40).keys()], { matched: 8, from: 40 }],
])('%s', (_, text, found) => {
  expect(continuationOf(text)).toEqual(found);
});
