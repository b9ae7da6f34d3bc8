import { expect, it } from 'vitest';
import { describeProgress, lineView } from './progress.ts';

const at = (bytes: number, more = {}) =>
  ({ status: 'downloading', model: 'a/b', bytes, total: 560_000_000, ...more }) as const;

it.each([
  [at(120_000_000), 34_000_000, '120 MB of 560 MB, 34.0 MB/s, 13 s left'],
  [at(0), null, '0 B of 560 MB'],
  [at(0), 100_000, '0 B of 560 MB, 100 kB/s, 1 h 33 min left'],
  [at(0), 1_000_000, '0 B of 560 MB, 1.0 MB/s, 9 min 20 s left'],
  [at(0, { step: 'another process is fetching it' }), null, '0 B of 560 MB, another process is fetching it'],
  [{ ...at(5), status: 'compiling', step: 'graph' } as const, 9, '5 B of 560 MB, graph'],
  [{ ...at(0), total: null, status: 'compiling', step: 'saving' } as const, null, 'saving'],
])('%j at %s bytes a second: %s', (progress, rate, words) => {
  expect(describeProgress(progress, rate)).toBe(words);
});

it('plain lines come at each stage, and at most every five seconds', () => {
  let now = 0;
  const lines: string[] = [];
  const view = lineView(
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
