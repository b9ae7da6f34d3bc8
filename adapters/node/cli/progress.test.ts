import { expect, it } from 'vitest';
import { downloadMoments, lineView } from './progress.ts';

const at = (bytes: number, more = {}) =>
  ({ status: 'downloading', model: 'a/b', bytes, total: 560_000_000, ...more }) as const;

it('plain lines come at each stage, and at most every five seconds', () => {
  let now = 0;
  const lines: string[] = [];
  const view = lineView(
    downloadMoments(),
    () => now,
    (line) => lines.push(line),
  );
  for (now = 0; now <= 12_000; now += 100) view.show(at(now * 10_000));
  view.show({ ...at(1), status: 'verifying' });
  expect(lines).toEqual([
    'Downloading a/b: 0 B of 560 MB (0 %)',
    'Downloading a/b: 50.0 MB of 560 MB, 10.0 MB/s, 51 s left (8 %)',
    'Downloading a/b: 100 MB of 560 MB, 10.0 MB/s, 46 s left (17 %)',
    'Verifying a/b: 1 B of 560 MB (0 %)',
  ]);
});
