/** How busy upstreams are, as one number each. */
export interface LoadSettings {
  /** An upstream over this many times the mean is passed over (Mirrokni, Thorup & Zadimoghaddam 2018: "bounded loads"). */
  bound: number;
  /** An upstream with less than this is never passed over: nobody waits there, and its cache is worth more than an even count. */
  idle: number;
  /** Milliseconds in which a finished request counts for 1/e of one that runs. */
  memoryMs: number;
}

export const LOAD: LoadSettings = { bound: 1.25, idle: 16, memoryMs: 3_000 };

/**
 * Requests that run, and those that ended lately with a weight that fades. Running ones alone are so few on an upstream that chance
 * would move contexts away from their cache; a long memory would not see a queue that builds up. benchmarks/fleet compares.
 */
export class Load {
  running = 0;
  #ended = 0;
  #at: number;
  readonly #memoryMs: number;

  constructor(now: number, memoryMs = LOAD.memoryMs) {
    this.#at = now;
    this.#memoryMs = memoryMs;
  }

  end(now: number, count = 1): void {
    this.#ended = this.#faded(now) + count;
    this.#at = now;
  }

  value(now: number): number {
    return this.running + this.#faded(now);
  }

  #faded(now: number): number {
    return this.#ended * Math.exp(-Math.max(0, now - this.#at) / this.#memoryMs);
  }
}

/** Upstreams over the bound go behind the others; inside both groups the order stays. `mean`: load for each unit of weight. */
export function passOver<B extends { weight: number }>(
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

/** Load for each unit of weight, over all of the upstreams. */
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
