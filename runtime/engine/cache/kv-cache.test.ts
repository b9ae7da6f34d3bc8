import { describe, expect, it } from 'vitest';
import { KvCache } from './kv-cache.ts';
import { cellBytes } from './kv-shape.ts';

const SHAPE = { layers: [{ heads: 1, headSize: 1 }] };
const cacheOf = (cells: number) => new KvCache(SHAPE, cells * cellBytes(SHAPE));
const tokens = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

/** Acquires a sequence and appends the tokens of `prefix` to it. */
function filled(cache: KvCache, prefix: readonly number[], cells: number) {
  const { sequence } = cache.acquire(prefix, cells)!;
  for (const token of prefix) sequence.append(token, sequence.length - 1);
  return sequence;
}

describe('the bytes of all sequences', () => {
  it.each([
    ['nothing known of the prefix', 9000],
    ['an idle sequence that holds its beginning', 0],
  ])('are a bound for a second job, with %s', (_, from) => {
    const cache = cacheOf(1024);
    cache.release(filled(cache, tokens(200), 256), 200);
    filled(cache, tokens(50, 5000), 768);
    expect(cache.acquire(tokens(200, from), 1024)).toBeUndefined();
    expect(cache.acquire(tokens(200, from), 256)).toBeDefined();
  });

  it('are none for a job that runs alone', () => {
    const cache = cacheOf(1024);
    cache.release(filled(cache, tokens(200), 256), 200);
    expect(cache.acquire(tokens(200), 4096)).toMatchObject({ cached: 200 });
  });
});

it('long jobs leave a short prefix of another scope cached, and evict their own', () => {
  const cache = cacheOf(4096);
  const short = cache.acquire(tokens(200), 256, { scope: 'other' })!.sequence;
  for (const token of tokens(200)) short.append(token, short.length - 1);
  cache.release(short, 200);
  for (const from of [1000, 2000]) cache.release(filled(cache, tokens(300, from), 512), 300);
  const long = filled(cache, tokens(3000, 10_000), 3072);
  cache.reserve(long, 6000);
  expect(cache.cachedLength(tokens(200), { scope: 'other' })).toBe(200);
  for (const from of [1000, 2000]) expect(cache.cachedLength(tokens(300, from))).toBe(0);
});

it('a sequence that cannot grow stays cached', () => {
  const cache = cacheOf(1024);
  cache.release(filled(cache, tokens(200), 256), 200);
  expect(() => cache.acquire(tokens(200), 2 ** 50)).toThrow(RangeError);
  cache.checkIntegrity([]);
  expect(cache.acquire(tokens(200), 256)).toMatchObject({ cached: 200 });
});
