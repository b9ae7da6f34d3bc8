import { expect, it } from 'vitest';
import { DownloadSpeed, describeProgress } from './describe-progress.ts';

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

it('measures the speed of the last seconds, for each stage by itself', () => {
  const speed = new DownloadSpeed();
  expect(speed.add(0, at(0))).toBeNull();
  expect(speed.add(100, at(50))).toBeNull();
  expect(speed.add(1000, at(2000))).toBe(2000);
  // The reading at 0 is more than 5 seconds old.
  expect(speed.add(5500, at(2050))).toBeCloseTo(2000 / 5.4);
  expect(speed.add(6000, { ...at(0), status: 'compiling' })).toBeNull();
});
