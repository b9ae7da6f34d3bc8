import { expect, test } from 'vitest';
import type { Figure } from './report.ts';
import { merged } from './results.ts';

const figure = (system: string, what: string, value: number): Figure => ({
  bench: 'x',
  system,
  case: what,
  metric: 'median',
  value,
  unit: 'ms',
});

test('a new measurement replaces its whole case, and the machine; other cases stay', () => {
  const kept = [
    figure('machine', 'Node.js 1', 1),
    figure('ours', '1 task', 1),
    figure('theirs', '1 task', 2),
    figure('ours', '4 tasks', 3),
  ];
  const again = [figure('machine', 'Node.js 2', 1), figure('ours', '1 task', 5)];
  expect(merged(kept, again)).toEqual([kept[3], ...again]);
  expect(merged([], again)).toEqual(again);
});
