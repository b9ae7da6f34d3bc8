import { expect, test } from 'vitest';
import { compare, evaluate, type RowOutcome } from './evaluate.ts';
import type { Sample } from './labels.ts';

const sample = (name: string, p: number, label: number): Sample => ({
  kind: 'choice',
  name,
  options: ['a', 'b'],
  groups: ['choice'],
  logprobs: [Math.log(p), Math.log(1 - p)],
  label,
});
const samples = [sample('x', 0.9, 0), sample('x', 0.8, 1), sample('y', 0.3, 1), sample('y', 0.6, 0)];

test('measures answers against labels', () => {
  const found = evaluate(samples);
  expect(found.labels).toBe(4);
  // 3 of 4: SciPy's exact interval is 0.1941 to 0.9937.
  expect(found.accuracy).toEqual({ value: 0.75, low: expect.closeTo(0.1941, 4), high: expect.closeTo(0.9937, 4) });
  // (0.02 + 1.28 + 0.18 + 0.32) / 4, and the gaps 0.1, 0.8, 0.3 and 0.4 in four bins.
  expect(found.brier.value).toBeCloseTo(0.45, 12);
  expect(found.ece.value).toBeCloseTo(0.4, 12);
  expect(found.brier.low).toBeLessThan(0.45);
  expect(found.brier.high).toBeGreaterThan(0.45);
  expect(found.coverage.map(({ accepted, errors }) => [accepted, errors])).toEqual([
    [1, 0],
    [2, 1],
    [3, 1],
    [4, 1],
  ]);
  expect(found.questions.map(({ name, labels, accuracy }) => [name, labels, accuracy.value])).toEqual([
    ['x', 2, 0.5],
    ['y', 2, 1],
  ]);
  expect(found.questions[0]?.confusion).toEqual({
    options: ['a', 'b'],
    counts: [
      [1, 0],
      [1, 0],
    ],
  });
  expect(evaluate(samples)).toEqual(found);
});

const row = (key: string, right: boolean): RowOutcome => ({ key, name: 'x', right, confidence: 0.9 });

test('compares evaluations of the same labels', () => {
  const one = [row('1', true), row('2', true), row('3', false), row('4', true)];
  const other = [row('1', true), row('2', false), row('3', false), row('4', false)];
  expect(compare(one, other)).toEqual({
    labels: 4,
    accuracy: 0.75,
    other_accuracy: 0.25,
    // Given two that differ: SciPy's exact interval of 2 of 2 is 0.1581 to 1.
    difference: { value: 0.5, low: expect.closeTo(0.5 * (2 * 0.1581 - 1), 4), high: 0.5 },
    only_this: 2,
    only_other: 0,
    p_value: 0.5,
  });
  expect(() => compare(one, [row('1', true), row('5', true)])).toThrow('from number 2 on');
  expect(() => compare(one, one.slice(0, 3))).toThrow('4 and 3, from number 4 on');
});
