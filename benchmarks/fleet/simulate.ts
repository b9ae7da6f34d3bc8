import { rendezvous } from '../../adapters/workers/upstreams/fleet.ts';
import { LOAD, Load } from '../../adapters/workers/upstreams/load.ts';
import { at } from '../../lib/at.ts';
import { hash64 } from '../../lib/prompt/affinity.ts';
import type { Policy, View } from './policies.ts';
import { SimulatedUpstream } from './simulated-upstream.ts';
import { random, type World, zipf } from './world.ts';

export interface Outcome {
  /** Share of the requests whose context was in the upstream's cache, 0 to 1. */
  hitShare: number;
  /** Median of the time that a request waited in the upstream's queue, in milliseconds. */
  waitP50: number;
  /** 99th percentile of that time, in milliseconds. */
  waitP99: number;
  /** Number of requests that the busiest upstream got, divided by the mean. */
  busiest: number;
}

/** Number of upstreams that are considered for a context: enough for one of them to be below the load bound. */
const RANKED = 32;

/**
 * Returns, for every context, the indices of its `RANKED` best upstreams in the order in which the edge tries them.
 */
export function rank(world: World): readonly (readonly number[])[] {
  const upstreams = Array.from({ length: world.upstreams }, (_, i) => ({ name: `npu-${i}`, weight: 1, i }));
  const ranks: number[][] = [];
  for (let context = 0; context < world.contexts; context++) {
    const ranked = rendezvous(hash64(`context ${context}`), upstreams);
    ranks.push(ranked.slice(0, RANKED).map(({ i }) => i));
  }
  return ranks;
}

/**
 * Simulates requests that arrive as a Poisson process with `perSecond` requests a second. Measures only the second half
 * of the requests, when the caches are warm.
 */
export function simulate(
  world: World,
  perSecond: number,
  policy: Policy,
  ranks: Awaited<ReturnType<typeof rank>>,
): Outcome {
  const next = random(1);
  const context = zipf(world.contexts, world.skew, next);
  const upstreams = Array.from(
    { length: world.upstreams },
    (_, i) => new SimulatedUpstream(`npu-${i}`, world, LOAD.memoryMs),
  );
  const total = new Load(0, LOAD.memoryMs);
  const view: View = {
    upstreams,
    ranked: (one) => at(ranks, one).map((i) => at(upstreams, i)),
    total,
    now: 0,
    random: next,
  };
  const ends = new Ends();
  const waits: number[] = [];
  const counts = new Map<SimulatedUpstream, number>();
  let hits = 0;
  for (let i = 0; i < world.requests; i++) {
    view.now -= (Math.log(1 - next()) * 1000) / perSecond;
    for (const upstream of ends.until(view.now)) {
      upstream.advance(view.now, (time) => {
        total.running--;
        total.end(time);
      });
    }
    const one = context();
    const upstream = policy(one, view);
    const { hit, waitMs, endsAt } = upstream.serve(one, view.now);
    total.running++;
    ends.add(endsAt, upstream);
    if (i < world.requests / 2) continue;
    waits.push(waitMs);
    if (hit) hits++;
    counts.set(upstream, (counts.get(upstream) ?? 0) + 1);
  }
  waits.sort((a, b) => a - b);
  const quantile = (share: number) => at(waits, Math.floor(share * waits.length));
  const busiest = (Math.max(...counts.values()) * world.upstreams) / waits.length;
  return { hitShare: hits / waits.length, waitP50: quantile(0.5), waitP99: quantile(0.99), busiest };
}

/** Holds upstreams in a binary heap, sorted by the time at which their next request ends. */
class Ends {
  readonly #heap: { endsAt: number; upstream: SimulatedUpstream }[] = [];

  add(endsAt: number, upstream: SimulatedUpstream): void {
    const heap = this.#heap;
    let i = heap.push({ endsAt, upstream }) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (at(heap, parent).endsAt <= at(heap, i).endsAt) return;
      [heap[parent], heap[i]] = [at(heap, i), at(heap, parent)];
      i = parent;
    }
  }

  *until(now: number): Generator<SimulatedUpstream> {
    const heap = this.#heap;
    while (heap.length > 0 && at(heap, 0).endsAt <= now) {
      const { upstream } = at(heap, 0);
      const last = heap.pop()!;
      if (heap.length > 0) this.#sink(last);
      yield upstream;
    }
  }

  #sink(entry: { endsAt: number; upstream: SimulatedUpstream }): void {
    const heap = this.#heap;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && at(heap, child + 1).endsAt < at(heap, child).endsAt) child++;
      if (at(heap, child).endsAt >= entry.endsAt) break;
      heap[i] = at(heap, child);
      i = child;
    }
    heap[i] = entry;
  }
}
