import { expect, test } from 'vitest';
import type { Figure } from '../report.ts';
import { medianAndRange, shown, table } from './table.ts';

const figure = (system: string, what: string, metric: string, value: number): Figure => ({
  bench: 'x',
  system,
  case: what,
  metric,
  value,
  unit: 'ms',
});

test.each([
  [1234.5, '1,235'],
  [0.12345, '0.123'],
  [12.3456, '12.3'],
  [7, '7'],
])('%d is shown as %s', (value, text) => {
  expect(shown(value)).toBe(text);
});

test('columns that are counted stand in order, whenever they were measured', () => {
  const figures = [
    figure('ours', '16 tasks', 'median', 20),
    figure('ours', '16 tasks', 'least', 19),
    figure('ours', '16 tasks', 'most', 22),
    figure('ours', '4 tasks', 'median', 10),
    figure('theirs', '4 tasks', 'median', 30),
  ];
  const text = table(
    figures,
    ({ system }) => system,
    ({ case: what }) => what,
    medianAndRange,
  );
  expect(text).toBe(
    ['| | 4 tasks | 16 tasks |', '|---|---:|---:|', '| ours | 10 | 20 (19 to 22) |', '| theirs | 30 |  |', ''].join(
      '\n',
    ),
  );
});
