import { describe, expect, test } from 'vitest';
import { seededRandom } from './bounds.ts';
import type { Thresholds } from './calibration.ts';
import type { Labelled } from './fit.ts';
import { certifiedThreshold, groupsOf, isAutomated } from './thresholds.ts';

const answered = (confidence: number, right: boolean): Labelled => ({
  logprobs: [Math.log(confidence), Math.log1p(-confidence)],
  label: right ? 0 : 1,
});

/** Simulates answers of uniform confidence c from 0.5 to 1, of which `2 ^ (power - 1) (1 - c) ^ power` are wrong. */
function simulated(count: number, power: number, random: () => number): Labelled[] {
  return Array.from({ length: count }, () => {
    const confidence = 0.5 + random() / 2;
    const wrong = 2 ** (power - 1) * (1 - confidence) ** power;
    return answered(Math.min(confidence, 1 - 1e-9), random() >= wrong);
  });
}

/** The share of wrong answers above a threshold: the mean of the wrong ones from there to 1. */
const errorAbove = (threshold: number, power: number) =>
  (2 ** (power - 1) * (1 - Math.max(0.5, threshold)) ** power) / (power + 1);

describe('certifiedThreshold', () => {
  test.each([
    // The last number is the share of repetitions that find a threshold at all: certifying nothing would be easy.
    [0.05, 0.05, 400, 2, 0.5],
    [0.1, 0.05, 200, 2, 0.5],
    [0.1, 0.1, 200, 2, 0.5],
    // As calibrated answers are: those above 0.9 have 5% wrong.
    [0.1, 0.05, 200, 1, 0.1],
  ])(
    'at most %d wrong but for a chance of %d, in 2,000 repetitions of %d labels (%d)',
    (target, delta, labels, power, least) => {
      const random = seededRandom(labels);
      let [broken, found] = [0, 0];
      for (let i = 0; i < 2000; i++) {
        const one = certifiedThreshold(simulated(labels, power, random), simulated(labels, power, random), {
          target,
          delta,
        });
        if (one.threshold === null) continue;
        found++;
        if (errorAbove(one.threshold, power) > target) broken++;
      }
      expect(found / 2000).toBeGreaterThan(least);
      expect(broken / 2000).toBeLessThanOrEqual(delta);
    },
  );

  test('accepts all answers if all are right enough', () => {
    const samples = Array.from({ length: 200 }, (_, i) => answered(0.6 + i / 1000, i !== 3));
    const found = certifiedThreshold(samples, samples, { target: 0.05, delta: 0.05 });
    expect(found).toMatchObject({ threshold: 0, labels: 200, accepted: 200, errors: 1, coverage: 1 });
    expect(found.error_upper).toBeCloseTo(0.0235, 3);
  });

  test.each([
    [58, 'not enough labels: 59 without an error are needed, and there are 58'],
    [100, 'no threshold keeps the target error on these labels'],
  ])('says why %d labels give no threshold', (count, reason) => {
    const samples = Array.from({ length: count }, (_, i) => answered(0.9, i % 2 === 0));
    const found = certifiedThreshold(samples, samples, { target: 0.05, delta: 0.05 });
    expect(found).toMatchObject({ threshold: null, accepted: 0, error_upper: null, reason });
  });

  test('answers of equal confidence are accepted together', () => {
    const samples = [
      ...Array.from({ length: 100 }, () => answered(0.9, true)),
      ...Array.from({ length: 100 }, (_, i) => answered(0.6, i % 2 === 0)),
    ];
    const found = certifiedThreshold(samples, samples, { target: 0.05, delta: 0.05 });
    expect(found).toMatchObject({ threshold: expect.closeTo(0.9, 12), accepted: 100, errors: 0 });
  });
});

describe('isAutomated', () => {
  const group = (threshold: number | null) => ({
    threshold,
    labels: 100,
    accepted: 90,
    errors: 1,
    error_upper: 0.04,
    coverage: 0.9,
  });
  const thresholds: Thresholds = {
    method: 'ltt-fixed-sequence',
    confidence: 0.95,
    fingerprint: 'ab'.repeat(32),
    orders: 1,
    targets: [
      { target_error: 0.05, groups: { choice: group(0.8), score: group(null), 'question:team': group(0.9) } },
      { target_error: 0.1, groups: { choice: group(0.7) } },
    ],
  };
  test.each([
    ['choice', undefined, 0.8, 0.05, true],
    ['choice', undefined, 0.79, 0.05, false],
    // The largest certified target that is small enough counts.
    ['choice', undefined, 0.75, 0.1, true],
    ['choice', undefined, 0.75, 0.2, true],
    ['choice', undefined, 0.75, 0.09, false],
    ['choice', undefined, 0.99, 0.01, null],
    // A question's own threshold comes first.
    ['choice', 'team', 0.85, 0.05, false],
    ['choice', 'other', 0.85, 0.05, true],
    ['score', undefined, 0.99, 0.05, null],
    ['predicate', undefined, 0.99, 0.05, null],
  ] as const)('a %s %s of %d at %d: %s', (kind, id, probability, maxError, expected) => {
    expect(isAutomated(thresholds, { groups: groupsOf(kind, false, id), probability }, maxError)).toBe(expected);
  });
});
