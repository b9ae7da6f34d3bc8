import { describe, expect, test } from 'vitest';
import { Random } from '../../runtime/engine/random.ts';
import { slopeOf } from './slope.ts';

const hours = (count: number, value: (hour: number) => number) =>
  Array.from({ length: count }, (_, i) => ({ seconds: i * 36, value: value(i / 100) }));

describe('slopeOf', () => {
  test('of a line is the line', () => {
    const { perHour, low, high } = slopeOf(hours(50, (hour) => 3 + 2 * hour));
    for (const value of [perHour, low, high]) expect(value).toBeCloseTo(2, 9);
  });

  // By hand: residuals -0.4, 0.8, -1, 1.2, -0.6; error √(3.6 / 3 / 0.001) = 34.64; t(3) = 3.182; half 110.2.
  test('has the interval of a textbook where measurements are independent', () => {
    const { perHour, low, high } = slopeOf([1, 3, 2, 5, 4].map((value, i) => ({ seconds: i * 36, value })));
    expect(perHour).toBeCloseTo(80, 6);
    expect((high - low) / 2 / 110.2).toBeCloseTo(1, 1);
    expect((high + low) / 2).toBeCloseTo(80, 6);
  });

  test('of noise includes zero about 19 times in 20', () => {
    let outside = 0;
    for (let seed = 0; seed < 400; seed++) {
      const random = new Random(seed);
      const { low, high } = slopeOf(hours(60, () => random.uniform()));
      if (low > 0 || high < 0) outside++;
    }
    expect(outside / 400).toBeGreaterThan(0.02);
    expect(outside / 400).toBeLessThan(0.09);
  });

  test('of a leak below the noise does not', () => {
    const random = new Random(1);
    expect(slopeOf(hours(100, (hour) => hour + random.uniform())).low).toBeGreaterThan(0);
  });
});
