import { expect, test } from 'vitest';
import type { Clock } from '../clock.ts';
import { AssayError } from '../errors.ts';
import { RetryLater } from './retry-later.ts';

/** Creates a clock that jumps over each sleep. */
function jumping(): Clock & { slept: number[] } {
  let now = 1_000_000;
  const slept: number[] = [];
  return {
    now: () => now,
    slept,
    async sleep(ms) {
      slept.push(ms);
      now += ms;
    },
  };
}

const busy = (retryAfterSeconds?: number) =>
  new AssayError('overloaded', 'busy', retryAfterSeconds === undefined ? {} : { retryAfterSeconds });

test.each([
  [[busy(3)], [3000]],
  [
    [busy(3), busy(7)],
    [3000, 7000],
  ],
  [[busy()], [1000]],
  [[busy(100_000)], [120_000]],
  [[new AssayError('rate_limited', 'slow down', { retryAfterSeconds: 9 })], [9000]],
  [[], []],
])('waits as long as the server says (%#)', async (refusals, slept) => {
  const clock = jumping();
  const left = [...refusals];
  const answer = await new RetryLater(clock).run(async () => {
    const refusal = left.shift();
    if (refusal) throw refusal;
    return 'answer';
  });
  expect(answer).toBe('answer');
  expect(clock.slept).toEqual(slept);
});

test('lets the other requests wait, too', async () => {
  const clock = jumping();
  const later = new RetryLater(clock);
  let asked = 0;
  await later.run(async () => {
    if (asked++ === 0) throw busy(5);
  });
  const before = clock.slept.length;
  await later.run(async () => undefined);
  expect(clock.slept).toHaveLength(before);
  expect(asked).toBe(2);
});

test('passes on every other error, and that of a caller that left', async () => {
  const later = new RetryLater(jumping());
  await expect(later.run(() => Promise.reject(new AssayError('input_too_long', 'long')))).rejects.toThrow('long');
  const leaving = new AbortController();
  const asking = later.run(() => {
    leaving.abort(new Error('left'));
    return Promise.reject(busy(2));
  }, leaving.signal);
  await expect(asking).rejects.toThrow('left');
});
