import { describe, expect, test } from 'vitest';
import { binomialCdf, fewestLabels, mcnemar, pairedDifference, proportion, upperBound } from './bounds.ts';

// The values are SciPy's (1.16): beta.ppf, binomtest().proportion_ci(method='exact') and binomtest().pvalue.

test.each([
  [0, 59, 0.05, 0.04950760988822693],
  [0, 58, 0.05, 0.050339338330420105],
  [9, 391, 0.05, 0.039822560006697635],
  [3, 153, 0.05, 0.049895030378963416],
  [5, 208, 0.05, 0.04987596640171588],
  [1, 93, 0.05, 0.049993978387988317],
  [10, 100, 0.01, 0.191330285386031],
  [50, 1000, 0.05, 0.06286340351237973],
  [100, 100, 0.05, 1],
  [0, 1, 0.1, 0.9],
])('%d of %d are with probability 1 - %d at most %d', (k, n, delta, expected) => {
  expect(upperBound(k, n, delta)).toBeCloseTo(expected, 8);
});

test.each([
  [0, 10, 0, 0.30849710781876294],
  [5, 10, 0.1870860284474045, 0.8129139715525955],
  [10, 10, 0.6915028921812371, 1],
  [81, 263, 0.25273674558504267, 0.36762192260134746],
  [950, 1000, 0.9346095120845064, 0.9626646023953394],
  [1, 2000, 1.265882387067635e-5, 0.002782639834672444],
])('%d of %d lie between %d and %d', (k, n, low, high) => {
  const found = proportion(k, n);
  expect(found.value).toBe(k / n);
  expect(found.low).toBeCloseTo(low, 8);
  expect(found.high).toBeCloseTo(high, 8);
});

test.each([
  [0, 0, 1],
  [1, 0, 1],
  [5, 1, 0.21875],
  [10, 3, 0.09228515625],
  [30, 12, 0.007915897334896727],
  [60, 100, 0.001953728034064355],
])('McNemar: %d against %d has p = %d', (one, other, expected) => {
  expect(mcnemar(one, other)).toBeCloseTo(expected, 10);
  // The interval of the difference has no 0 inside exactly if the test finds one.
  const { value, low, high } = pairedDifference(one, other, 200);
  expect(value).toBeCloseTo((one - other) / 200, 12);
  expect(low > 0 || high < 0).toBe(expected < 0.05);
});

describe('labels without an error', () => {
  test.each([
    [0.1, 29],
    [0.05, 59],
    [0.02, 149],
    [0.01, 299],
  ])('a target of %d needs %d', (target, labels) => {
    expect(fewestLabels(target, 0.05)).toBe(labels);
    expect(upperBound(0, labels, 0.05)).toBeLessThanOrEqual(target);
    expect(upperBound(0, labels - 1, 0.05)).toBeGreaterThan(target);
  });
});

test('sums of many terms stay exact', () => {
  // Half of the mass of a symmetric distribution, and all of it.
  expect(binomialCdf(49_999, 99_999, 0.5)).toBeCloseTo(0.5, 9);
  expect(binomialCdf(100_000, 100_000, 0.3)).toBe(1);
  expect(binomialCdf(0, 100_000, 1e-5)).toBeCloseTo(Math.exp(-1), 5);
});
