import fc from 'fast-check';
import { expect, test } from 'vitest';
import { estimateOf, gridOf } from './estimate.ts';

const field = (changes: object) => ({ type: 'estimate' as const, min: 0, max: 10, ...changes });

test.each([
  ['steps', field({ step: 5 }), ['below 0', '0', '5', '10', 'above 10']],
  ['steps that end before max', field({ step: 4 }), ['below 0', '0', '4', '8', 'above 10'.replace('10', '8')]],
  [
    'decimal steps without rounding errors',
    field({ max: 0.3, step: 0.1 }),
    ['below 0', '0', '0.1', '0.2', '0.3', 'above 0.3'],
  ],
  [
    'months',
    field({ min: '2026-01-31', max: '2026-04-30', step: 'month' }),
    ['2026-01-31', '2026-02-28', '2026-03-31', '2026-04-30'],
  ],
  ['years', field({ min: '2024-02-29', max: '2026-12-31', step: 'year' }), ['2024-02-29', '2025-02-28', '2026-02-28']],
  ['weeks', field({ min: '2026-03-01', max: '2026-03-20', step: 7 }), ['2026-03-01', '2026-03-08', '2026-03-15']],
] as const)('the grid has %s', (_, asked, options) => {
  expect(gridOf(asked as never).options).toEqual(options);
});

test.each([
  ['no step', field({}), 103],
  ['too many steps', field({ max: 1e6, step: 1 }), 103],
  ['a log scale', field({ min: 1, max: 1e6, scale: 'log' }), 103],
  ['few days', field({ min: '2026-03-01', max: '2026-03-05' }), 5],
  ['253 steps', field({ max: 252, step: 1 }), 255],
  ['254 steps', field({ max: 253, step: 1 }), 103],
])('the grid of a field with %s is bounded', (_, asked, count) => {
  const { options } = gridOf(asked as never);
  expect(options).toHaveLength(count);
  expect(new Set(options).size).toBe(count);
});

test('an answer has the mean, the quantiles and the mass beyond the bounds', () => {
  const grid = gridOf(field({ step: 5 }) as never);
  const logprobs = [0.1, 0.2, 0.4, 0.2, 0.1].map(Math.log);
  expect(estimateOf(grid, logprobs, false)).toEqual({
    value: 5,
    mean: 5,
    median: 5,
    p10: 0,
    p90: 10,
    p_below: expect.closeTo(0.1),
    p_above: expect.closeTo(0.1),
  });
});

test('dates are answered as dates', () => {
  const grid = gridOf(field({ min: '2026-03-01', max: '2026-03-03', step: 1 }) as never);
  expect(estimateOf(grid, [0.5, 0.5, 0].map(Math.log), false)).toEqual({
    value: '2026-03-01',
    mean: '2026-03-02',
    median: '2026-03-02',
    p10: '2026-03-01',
    p90: '2026-03-02',
  });
});

test('quantiles ascend and stay within the bounds, and the value is on the grid', () => {
  fc.assert(
    fc.property(
      fc.double({ min: -1000, max: 1000, noNaN: true }),
      fc.double({ min: 0.01, max: 1000, noNaN: true }),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 103, maxLength: 103 }),
      (min, span, weights) => {
        const max = min + span;
        fc.pre(max > min && weights.some((weight) => weight > 0));
        const grid = gridOf(field({ min, max }) as never);
        fc.pre(grid.options.length === 103);
        const sum = weights.reduce((a, b) => a + b, 0);
        const answer = estimateOf(
          grid,
          weights.map((weight) => Math.log(weight / sum)),
          true,
        ) as {
          value: number;
          quantiles: number[];
        };
        expect(answer.quantiles).toHaveLength(99);
        const near = 1e-9 * Math.max(Math.abs(min), Math.abs(max));
        answer.quantiles.forEach((q, i) => {
          expect(q).toBeGreaterThanOrEqual((answer.quantiles[i - 1] ?? min) - near);
          expect(q).toBeLessThanOrEqual(max + near);
        });
      },
    ),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
  );
});
