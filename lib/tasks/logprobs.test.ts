import { describe, expect, test } from 'vitest';
import { averaged, indexOfHighest, logSum, normalised } from './logprobs.ts';

const logs = (...probabilities: number[]) => probabilities.map(Math.log);
const probabilities = (logprobs: readonly number[]) => logprobs.map(Math.exp);

describe('normalised', () => {
  test.each([
    [logs(0.1, 0.3), [0.25, 0.75]],
    [
      [-1000, -1001],
      [0.731, 0.269],
    ],
    [[0], [1]],
    [
      [Number.NEGATIVE_INFINITY, 0],
      [0, 1],
    ],
  ])('%j', (given, expected) => {
    const found = normalised(given);
    expect(found.every(Number.isFinite)).toBe(true);
    expect(logSum(found)).toBeCloseTo(0, 12);
    for (const [i, p] of probabilities(found).entries()) expect(p).toBeCloseTo(expected[i]!, 3);
  });
});

test('an average treats all orders alike, and is normalised', () => {
  const found = averaged([logs(0.9, 0.1), logs(0.1, 0.9)]);
  expect(found[0]).toBeCloseTo(Math.log(0.5), 12);
  expect(logSum(averaged([logs(0.7, 0.2, 0.1), logs(0.3, 0.3, 0.4)]))).toBeCloseTo(0, 12);
  const once = logs(0.7, 0.2, 0.1);
  for (const [i, logprob] of averaged([once]).entries()) expect(logprob).toBeCloseTo(once[i]!, 12);
});

test('the first of equals is the highest', () => {
  expect(indexOfHighest([1, 3, 3])).toBe(1);
});
