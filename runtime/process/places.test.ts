import { beforeEach, describe, expect, test } from 'vitest';
import type { AssayError } from '../../lib/errors.ts';
import { charactersOf, type Place, Places } from './places.ts';

let now: number;
let places: Places;
beforeEach(() => {
  now = 5_000;
  places = new Places({ requests: 4, characters: 10_000 }, () => now);
});

function refusal(characters = 100): AssayError {
  try {
    places.take(characters);
  } catch (error) {
    return error as AssayError;
  }
  throw new Error('there was a place');
}

/** Four requests of 100 characters at a time, one answered every `ms`: what stays is the speed. */
function answerMany(ms: number, count = 200): Place[] {
  const held = Array.from({ length: 4 }, () => places.take(100));
  for (let i = 0; i < count; i++) {
    now += ms;
    held.shift()!.free(true);
    held.push(places.take(100));
  }
  return held;
}

describe('how many', () => {
  test('requests there may be', () => {
    const held = Array.from({ length: 4 }, () => places.take(1));
    expect(refusal()).toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 });
    held[2]!.free(false);
    held[2]!.free(true);
    places.take(1);
    expect(refusal().code).toBe('overloaded');
    expect(places.held).toBe(4);
  });

  test('characters there may be, but for one request alone', () => {
    const whole = places.take(50_000);
    expect(refusal(1).code).toBe('overloaded');
    whole.free(false);
    places.take(6_000);
    const rest = places.take(4_000);
    expect(refusal(1).code).toBe('overloaded');
    rest.free(false);
    places.take(4_000);
  });
});

describe('when to come back', () => {
  test.each([
    [100, 1],
    [1_000, 4],
    [5_000, 20],
    [60_000, 30],
  ])('with an answer every %d ms: after the work in front, %d s, and at most half a minute', (ms, seconds) => {
    answerMany(ms);
    expect(refusal().retryAfterSeconds).toBe(seconds);
  });

  test('as one after another, each after those that were refused before', () => {
    answerMany(1_000);
    expect([1, 2, 3].map(() => refusal().retryAfterSeconds)).toEqual([4, 5, 6]);
    now += 3_000;
    expect(refusal().retryAfterSeconds).toBe(4);
    for (let i = 0; i < 100; i++) refusal();
    expect(refusal().retryAfterSeconds).toBe(30);
    now += 60_000;
    expect(refusal().retryAfterSeconds).toBe(4);
  });

  test('large requests in front count for more than small ones', () => {
    for (const place of answerMany(1_000)) place.free(false);
    for (let i = 0; i < 4; i++) places.take(300);
    expect(refusal().retryAfterSeconds).toBe(12);
  });

  test('pauses without work are no measure of speed', () => {
    for (const place of answerMany(1_000)) place.free(false);
    now += 3_600_000;
    answerMany(1_000, 1);
    expect(refusal().retryAfterSeconds).toBe(4);
  });

  test('what was cancelled is no measure of speed', () => {
    const held = answerMany(1_000);
    for (let i = 0; i < 500; i++) {
      held.shift()!.free(false);
      held.push(places.take(100));
    }
    expect(refusal().retryAfterSeconds).toBe(4);
  });
});

test('characters are counted wherever they stand', () => {
  expect(charactersOf({ a: 'xyz', b: [{ c: 'é' }, 'pq', 5, null, true], d: {} })).toBe(1 + 3 + 1 + 1 + 1 + 2 + 1);
});
