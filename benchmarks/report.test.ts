import { expect, test } from 'vitest';
import { median, quantile } from './report.ts';

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 3, 2], 2.5],
  [[7, 5], 6],
  [[9], 9],
  [[], Number.NaN],
])('the median of %j is %d', (values, middle) => {
  expect(median(values)).toBe(middle);
});

test.each([
  [0.5, 50],
  [0.99, 99],
  [1, 100],
  [0, 1],
])('%d of 1 to 100 lie at or below %d', (part, value) => {
  const sorted = Array.from({ length: 100 }, (_, i) => i + 1);
  expect(quantile(sorted, part)).toBe(value);
});
