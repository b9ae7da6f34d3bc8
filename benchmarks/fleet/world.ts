import { at } from '../../lib/at.ts';
/**
 * Describes the parameters of a simulation: the requests, their contexts, and the time that an upstream takes for a
 * request.
 */
export interface World {
  upstreams: number;
  contexts: number;
  /** Exponent of Zipf's law: the k-th most popular context is requested in proportion to k^-skew. */
  skew: number;
  /** Number of contexts in an upstream's prefix cache. If it is full, the least recently used one is dropped. */
  cached: number;
  /** Milliseconds for a request whose context is cached. */
  hitMs: number;
  /** Milliseconds for a request whose context must be read first (prefill). */
  missMs: number;
  requests: number;
}

/**
 * Parameters of the simulated fleet. A request with one task on a context of 1,024 tokens takes 1.9 s, or 0.2 s if the
 * context is cached.
 */
export const WORLD: World = {
  upstreams: 1_000,
  contexts: 20_000,
  skew: 0.9,
  cached: 40,
  hitMs: 200,
  missMs: 1_900,
  requests: 300_000,
};

/** Returns a seeded random generator (Mulberry32, by Tommy Ettinger). It gives every policy the same requests. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a function that draws contexts according to Zipf's law. It bisects the cumulative distribution. */
export function zipf(contexts: number, skew: number, next: () => number): () => number {
  const cumulative = new Float64Array(contexts);
  let sum = 0;
  for (let k = 0; k < contexts; k++) {
    sum += (k + 1) ** -skew;
    cumulative[k] = sum;
  }
  return () => {
    const wanted = next() * sum;
    let low = 0;
    let high = contexts - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(cumulative, middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
