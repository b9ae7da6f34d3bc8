import { expect, it } from 'vitest';
import { RestartBackoff } from './supervisor.ts';

it('starts at once, then after pauses that double up to 30 s, and again at once after a reset', () => {
  const backoff = new RestartBackoff();
  const pauses = Array.from({ length: 10 }, () => backoff.next());
  expect(pauses).toEqual([0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  backoff.reset();
  expect(backoff.next()).toBe(0);
});
