import { at } from '../../lib/at.ts';
/**
 * Describes the parameters of a simulation: who asks, about what, and how long an upstream takes. Times are in
 * milliseconds.
 */
export interface World {
  upstreams: number;
  contexts: number;
  /** Exponent of Zipf's law: the k-th most popular context is requested in proportion to k^-skew. */
  skew: number;
  /** Contexts in an upstream's prefix cache; the least recently used one is dropped. */
  cached: number;
  /** The time of a request whose context is cached, and of one whose context must be read first. */
  hitMs: number;
  missMs: number;
  requests: number;
}

/**
 * Workload W with one task on a context of 1,024 tokens takes 1.9 s, or 0.2 s if the prefix is cached. An upstream
 * answers one request at a time.
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

/** Creates a random generator with a seed, Mulberry32 (Tommy Ettinger), so that every policy sees the same requests. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws contexts by Zipf's law: the inverse of the cumulative distribution, by bisection. */
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
