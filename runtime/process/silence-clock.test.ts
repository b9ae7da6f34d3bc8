import { expect, it } from 'vitest';
import { SilenceClock } from './silence-clock.ts';

const LIMIT = 1000;

/**
 * Returns the time at which a silent process first counts as hung, with a reading every 100 ms for a minute; null if it
 * never does.
 *
 * @param processorMs processor time of the process at a time
 */
function hungAt(processorMs: (now: number) => number | null, messages: readonly number[] = []): number | null {
  const clock = new SilenceClock(0);
  for (let now = 100; now <= 60_000; now += 100) {
    if (messages.includes(now - 50)) clock.heard(now - 50);
    clock.read(now, processorMs(now));
    if (clock.exceeds(LIMIT, now)) return now;
  }
  return null;
}

it.each<[string, (now: number) => number | null, number]>([
  ['waits for something that never happens', () => 0, 1100],
  ['computes without end', (now) => now, 1100],
  ['computes without end in four threads', (now) => 4 * now, 1100],
  ['computes without end and gets a third of a processor', (now) => now / 3, 3100],
  ['computes without end and runs for 20 ms each second', (now) => 20 * Math.floor(now / 1000), 10_100],
  ['ran for half a second and then waits', (now) => Math.min(now, 500), 1600],
  ['has an unknown processor time', () => null, 3100],
  ['has an unknown processor time after a known one', (now) => (now < 500 ? now : null), 3100],
])('counts a silent process as hung that %s', (_, processorMs, at) => {
  expect(hungAt(processorMs)).toBe(at);
});

it('counts from the last message', () => {
  expect(hungAt((now) => now, [850, 1550])).toBe(2600);
  expect(hungAt(() => 0, [850, 1550])).toBe(2600);
  expect(hungAt(() => null, [850, 1550])).toBe(4600);
});

it('does not count a process as hung that reports in time', () => {
  const messages = Array.from({ length: 60 }, (_, second) => 1000 * second + 50);
  expect(hungAt((now) => 2 * now, messages)).toBeNull();
});

it('returns the wall time since the last message', () => {
  const clock = new SilenceClock(100);
  clock.heard(150);
  clock.read(400, 20);
  expect(clock.silentMs(450)).toBe(300);
});
