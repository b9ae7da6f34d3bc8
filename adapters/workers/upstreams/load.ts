/** Holds the settings of `Load` (`memoryMs`) and of `overloadedLast` (`bound` and `idle`). */
export interface LoadSettings {
  /**
   * Multiple of the mean load per weight above which an upstream is tried last. Source: Mirrokni, Thorup and
   * Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018.
   */
  bound: number;
  /**
   * Load below which an upstream is never moved to the end: no request waits there, and its prefix cache is worth more
   * than an even distribution.
   */
  idle: number;
  /** Milliseconds in which the contribution of a finished request to the load falls to 1/e. */
  memoryMs: number;
}

export const LOAD: LoadSettings = { bound: 1.25, idle: 16, memoryMs: 3_000 };

/**
 * Measures the load of an upstream: running requests, plus recently finished ones with a decaying weight. Running
 * requests alone are so few that random peaks would move contexts away from their cached prefixes. A slow decay would
 * miss a growing queue. `benchmarks/fleet` compares both.
 */
export class Load {
  /** Number of running requests, which the owner of this object updates. */
  running = 0;
  #ended = 0;
  #at: number;
  readonly #memoryMs: number;

  /** @param now milliseconds, of the same clock as for the methods */
  constructor(now: number, memoryMs = LOAD.memoryMs) {
    this.#at = now;
    this.#memoryMs = memoryMs;
  }

  /** Records that `count` requests have ended. Does not change `running`. */
  end(now: number, count = 1): void {
    this.#ended = this.#faded(now) + count;
    this.#at = now;
  }

  /** Returns the load: `running`, plus each ended request with a weight that falls from 1 towards 0. */
  value(now: number): number {
    return this.running + this.#faded(now);
  }

  #faded(now: number): number {
    return this.#ended * Math.exp(-Math.max(0, now - this.#at) / this.#memoryMs);
  }
}

/**
 * Returns the upstreams with the overloaded ones (`LoadSettings`) moved to the end. Both groups keep their order.
 * `mean` is the mean load per unit of weight (`meanLoad`).
 */
export function overloadedLast<B extends { weight: number }>(
  ranked: readonly B[],
  loadOf: (upstream: B) => number,
  mean: number,
  settings = LOAD,
): B[] {
  const over = new Set(
    ranked.filter((upstream) => {
      const load = loadOf(upstream);
      return load >= settings.idle && load > settings.bound * mean * upstream.weight;
    }),
  );
  return over.size === 0 ? [...ranked] : [...ranked.filter((upstream) => !over.has(upstream)), ...over];
}

/** Returns the mean load per unit of weight of all upstreams. */
export function meanLoad<B extends { weight: number }>(
  upstreams: readonly B[],
  loadOf: (upstream: B) => number,
): number {
  let load = 0;
  let weight = 0;
  for (const upstream of upstreams) {
    load += loadOf(upstream);
    weight += upstream.weight;
  }
  return weight === 0 ? 0 : load / weight;
}
