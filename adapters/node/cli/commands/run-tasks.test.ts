import { expect, test } from 'vitest';
import { lineView } from '../progress.ts';
import { rowMoments } from './run-tasks.ts';

test('says how far a run is every five seconds, with its rate, the time left and its errors', () => {
  let now = 0;
  const lines: string[] = [];
  const view = lineView(
    rowMoments(),
    () => now,
    (line) => lines.push(line),
  );
  const counts = { total: 1000, before: 100, errors: 0, cut: 0 };
  view.show({ ...counts, done: 100 });
  for (now = 1000; now <= 10_000; now += 1000)
    view.show({ ...counts, done: 100 + now / 50, errors: Math.floor(now / 5_000) });
  now = 3_610_000;
  view.show({ ...counts, done: 101, errors: 2 });
  expect(lines).toEqual([
    '100 of 1000 rows',
    '200 of 1000 rows, 20.0/s, 40 s left, 1 error',
    '300 of 1000 rows, 20.0/s, 35 s left, 2 errors',
    '101 of 1000 rows, 0.0/s, 901.5 h left, 2 errors',
  ]);
});
