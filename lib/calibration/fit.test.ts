import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atTemperature, valueAtTemperature } from './calibration.ts';
import { errorsOf, fitTemperature, type Labelled, reliabilityBins } from './fit.ts';

const logs = (...probabilities: number[]) => probabilities.map(Math.log);
const answered = (right: number, ...probabilities: number[]): Labelled => ({
  logprobs: logs(...probabilities),
  label: right,
});

/**
 * Creates 100 answers for each probability p of `truth`: the first option is right in the share p of them, but its
 * probability is p sharpened by `temperature`.
 */
function miscalibrated(truth: readonly number[], temperature: number): Labelled[] {
  return truth.flatMap((p) => {
    const logprobs = atTemperature(logs(p, 1 - p), 1 / temperature);
    return Array.from({ length: 100 }, (_, i) => ({ logprobs, label: i < Math.round(100 * p) ? 0 : 1 }));
  });
}

describe('errorsOf', () => {
  test.each<[string, Labelled[], { ece: number; brier: number }]>([
    ['certain and right', [answered(0, 1, 0)], { ece: 0, brier: 0 }],
    ['certain and wrong', [answered(1, 1, 0)], { ece: 1, brier: 2 }],
    ['as sure as it is right', [answered(0, 0.5, 0.5), answered(1, 0.5, 0.5)], { ece: 0, brier: 0.5 }],
    ['too sure', [answered(0, 0.9, 0.1), answered(1, 0.9, 0.1)], { ece: 0.4, brier: 0.82 }],
  ])('%s', (_, samples, expected) => {
    const found = errorsOf(samples);
    expect(found.ece).toBeCloseTo(expected.ece, 4);
    expect(found.brier).toBeCloseTo(expected.brier, 4);
  });
});

test('bins hold every answer once, by the probability of the likeliest option', () => {
  const bins = reliabilityBins([answered(0, 1, 0), answered(1, 0.55, 0.45), answered(0, 0.55, 0.45)]);
  expect(bins.map(({ count }) => count)).toEqual([0, 0, 0, 0, 0, 2, 0, 0, 0, 1]);
  expect(bins[5]).toMatchObject({ accuracy: 0.5, confidence: expect.closeTo(0.55, 9) });
});

describe('fitTemperature', () => {
  test('keeps the temperature 1 if no other one is better', () => {
    // Half of the answers are certain, and one of those is wrong. Maximum likelihood alone would flatten all the
    // others.
    const certain = Array.from({ length: 100 }, (_, i) => ({ logprobs: [0, -700], label: i === 0 ? 1 : 0 }));
    const even = Array.from({ length: 100 }, (_, i) => answered(i % 10 < 8 ? 0 : 1, 0.8, 0.2));
    const fit = fitTemperature([...certain, ...even]);
    expect(fit).toMatchObject({ temperature: 1, after: fit.before });
  });

  test.each([0.5, 2, 3.3])('finds the temperature %d that probabilities were sharpened by', (temperature) => {
    const fit = fitTemperature(miscalibrated([0.55, 0.65, 0.75, 0.85, 0.95], temperature));
    expect(fit.temperature).toBeCloseTo(temperature, 1);
    expect(fit.labels).toBe(500);
    expect(fit.after.ece).toBeLessThan(fit.before.ece / 3);
    expect(fit.after.brier).toBeLessThanOrEqual(fit.before.brier + 1e-3);
  });
});

test('a temperature keeps the order of the options, and their sum', () => {
  const distribution = fc
    .array(fc.double({ min: 1e-6, max: 1, noNaN: true }), { minLength: 1, maxLength: 9 })
    .map((weights) => logs(...weights.map((weight) => weight / weights.reduce((a, b) => a + b))));
  fc.assert(
    fc.property(distribution, fc.double({ min: 0.1, max: 10, noNaN: true }), (logprobs, temperature) => {
      const found = atTemperature(logprobs, temperature);
      expect(found.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 9);
      for (let i = 1; i < found.length; i++) {
        expect(
          Math.sign(found[i]! - found[i - 1]!) * Math.sign(logprobs[i]! - logprobs[i - 1]!),
        ).toBeGreaterThanOrEqual(0);
      }
    }),
  );
});

test.each([
  [0.9, 1, 0.9],
  [0.5, 4, 0.5],
  [0.8, 2, 2 / 3],
  [1, 2, 1],
  [0, 2, 0],
])('the value probability %d at temperature %d is %d', (probability, temperature, expected) => {
  expect(valueAtTemperature(probability, temperature)).toBeCloseTo(expected, 9);
});
