import { describe, expect, it } from 'vitest';
import { backoff, retryAfterMs } from './hub-error.ts';

describe('backoff', () => {
  it.each([
    [1, 0, 250],
    [1, 1, 500],
    [2, 1, 1000],
    [4, 0, 2000],
    [7, 1, 30_000],
    [60, 1, 30_000],
  ])('after %i tries, random %d: %d ms', (tried, random, ms) => {
    expect(backoff(tried, random)).toBe(ms);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each<[string | null, number | null]>([
    ['3', 3000],
    ['0', 0],
    ['86400', 300_000],
    ['Thu, 01 Jan 2026 00:00:10 GMT', 10_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['soon', null],
    [null, null],
  ])('%s: %s ms', (value, ms) => {
    expect(retryAfterMs(new Headers(value === null ? {} : { 'retry-after': value }), now)).toBe(ms);
  });
});
