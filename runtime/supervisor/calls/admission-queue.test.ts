import { beforeEach, describe, expect, test } from 'vitest';
import type { AssayError } from '../../../lib/errors.ts';
import type { RequestSize } from '../../../lib/limits/request-size.ts';
import { type Admission, AdmissionQueue } from './admission-queue.ts';

let now: number;
let admission: AdmissionQueue;
beforeEach(() => {
  now = 5_000;
  admission = new AdmissionQueue({ requests: 4, tokens: 10_000, characters: 20_000 }, () => now);
});

const cost = (tokens: number, characters = tokens): RequestSize => ({ tokens, characters });

function refusal(tokens = 100): AssayError {
  try {
    admission.admit(cost(tokens));
  } catch (error) {
    return error as AssayError;
  }
  throw new Error('admitted');
}

/**
 * Answers a request of 100 tokens every `ms` milliseconds, with four in the queue at a time. Returns the last four
 * admissions.
 */
function answerMany(ms: number, count = 200): Admission[] {
  const held = Array.from({ length: 4 }, () => admission.admit(cost(100)));
  for (let i = 0; i < count; i++) {
    now += ms;
    held.shift()!.release(true);
    held.push(admission.admit(cost(100)));
  }
  return held;
}

describe('limits', () => {
  test('refuses requests beyond the maximum number', () => {
    const held = Array.from({ length: 4 }, () => admission.admit(cost(1)));
    expect(refusal()).toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 });
    held[2]!.release(false);
    held[2]!.release(true);
    admission.admit(cost(1));
    expect(refusal().code).toBe('overloaded');
    expect(admission.held).toBe(4);
  });

  test('refuses tokens beyond the maximum, but not of a request that is alone', () => {
    const whole = admission.admit(cost(10_001));
    expect(refusal(1).code).toBe('overloaded');
    whole.release(false);
    admission.admit(cost(6_000));
    const rest = admission.admit(cost(4_000));
    expect(refusal(1).code).toBe('overloaded');
    rest.release(false);
    admission.admit(cost(4_000));
  });
});

describe('Retry-After', () => {
  test.each([
    [100, 1],
    [1_000, 4],
    [5_000, 20],
    [60_000, 30],
  ])(
    'with an answer every %d ms, is the time of the work ahead, %d s, and half a minute at first if that is more',
    (ms, seconds) => {
      answerMany(ms);
      expect(refusal().retryAfterSeconds).toBe(seconds);
    },
  );

  test('counts requests that were refused earlier as work ahead', () => {
    answerMany(1_000);
    expect([1, 2, 3].map(() => refusal().retryAfterSeconds)).toEqual([4, 5, 6]);
    now += 3_000;
    expect(refusal().retryAfterSeconds).toBe(4);
    for (let i = 0; i < 100; i++) refusal();
    expect(refusal().retryAfterSeconds).toBeGreaterThanOrEqual(30);
    now += 60_000;
    expect(refusal().retryAfterSeconds).toBe(4);
  });

  test.each([1, 500, 60_000])(
    'spreads 1,000 requests, with an answer every %d ms, so that no second gets a tenth',
    (ms) => {
      answerMany(ms);
      const seconds = Array.from({ length: 1_000 }, () => refusal().retryAfterSeconds ?? 0);
      const returning = new Map<number, number>();
      for (const second of seconds) returning.set(second, (returning.get(second) ?? 0) + 1);
      expect(Math.max(...seconds)).toBeLessThanOrEqual(60);
      // With fast answers the queue is empty before the second is over, so clients may return together.
      if (ms > 1) expect(Math.max(...returning.values())).toBeLessThan(100);
      // A caller whose estimated wait exceeds half a minute waits at least half a minute.
      const honest = seconds.findIndex((second) => second >= 30);
      expect(seconds.slice(0, honest)).toEqual(seconds.slice(0, honest).sort((a, b) => a - b));
      expect(seconds.slice(honest).every((second) => honest < 0 || second >= 30)).toBe(true);
    },
  );

  test('counts large requests ahead for more than small ones', () => {
    for (const one of answerMany(1_000)) one.release(false);
    for (let i = 0; i < 4; i++) admission.admit(cost(300));
    expect(refusal().retryAfterSeconds).toBe(12);
  });

  test('ignores pauses without work when it measures speed', () => {
    for (const one of answerMany(1_000)) one.release(false);
    now += 3_600_000;
    answerMany(1_000, 1);
    expect(refusal().retryAfterSeconds).toBe(4);
  });

  test('ignores cancelled requests when it measures speed', () => {
    const held = answerMany(1_000);
    for (let i = 0; i < 500; i++) {
      held.shift()!.release(false);
      held.push(admission.admit(cost(100)));
    }
    expect(refusal().retryAfterSeconds).toBe(4);
  });
});

describe('counts', () => {
  test('the characters of all requests together', () => {
    admission.admit(cost(1, 15_000));
    expect(() => admission.admit(cost(1, 6_000))).toThrow('waiting');
    admission.admit(cost(1, 5_000));
  });

  test('the exact tokens of a request once they are known', () => {
    const admitted = admission.admit(cost(9_000));
    expect(refusal(2_000).code).toBe('overloaded');
    admitted.recount(5_000);
    const other = admission.admit(cost(5_000));
    expect(refusal(1).code).toBe('overloaded');
    admitted.release(true);
    admitted.recount(50_000);
    admission.admit(cost(5_000));
    other.release(true);
  });

  test('batch requests leave a quarter to interactive ones', () => {
    admission.admit(cost(5_000), 'batch');
    expect(() => admission.admit(cost(3_000), 'batch')).toThrow('waiting');
    admission.admit(cost(2_500), 'batch');
    admission.admit(cost(2_500), 'interactive');
  });

  test('the requests of one caller leave a quarter to others, which any one request of another may use', () => {
    for (const _ of [1, 2, 3]) admission.admit(cost(100), 'interactive', 'greedy');
    expect(() => admission.admit(cost(100), 'interactive', 'greedy')).toThrow('waiting');
    admission.admit(cost(100), 'interactive', 'other');
  });

  test('a caller may hold three quarters of the tokens', () => {
    admission.admit(cost(7_000), 'interactive', 'greedy');
    expect(() => admission.admit(cost(600), 'interactive', 'greedy')).toThrow('waiting');
    admission.admit(cost(500), 'interactive', 'greedy');
    admission.admit(cost(2_500), 'interactive', 'other');
  });
});

test('a request counts the part that runs at most, so the largest one leaves room for others', () => {
  const queue = new AdmissionQueue();
  queue.admit(cost(131_072), 'interactive', 'greedy').recount(131_072);
  for (let i = 0; i < 7; i++) queue.admit(cost(16_384), 'interactive', `other ${i}`);
  expect(() => queue.admit(cost(1))).toThrow('waiting');
});
