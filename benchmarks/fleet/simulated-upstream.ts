import { Load } from '../../adapters/workers/upstreams/load.ts';
import { at } from '../../lib/at.ts';
import type { World } from './world.ts';

/** Simulates an upstream: a queue in front of one worker, and a cache of contexts. */
export class SimulatedUpstream {
  readonly name: string;
  readonly weight = 1;
  readonly load: Load;
  readonly #world: World;
  /** End times of the requests that wait or run, soonest first, in milliseconds. */
  readonly #ends: number[] = [];
  #ended = 0;
  #freeAt = 0;
  /** Cached contexts; the order of insertion is the order of last use. */
  readonly #cache = new Set<number>();

  constructor(name: string, world: World, memoryMs: number) {
    this.name = name;
    this.#world = world;
    this.load = new Load(0, memoryMs);
  }

  get queued(): number {
    return this.#ends.length - this.#ended;
  }

  /** Removes the requests that have ended by `now`; calls `onEnd` with the end time of each. */
  advance(now: number, onEnd: (at: number) => void): void {
    while (this.#ended < this.#ends.length && at(this.#ends, this.#ended) <= now) {
      const end = at(this.#ends, this.#ended++);
      this.load.running--;
      this.load.end(end);
      onEnd(end);
    }
    if (this.#ended < 1_000) return;
    this.#ends.splice(0, this.#ended);
    this.#ended = 0;
  }

  serve(context: number, now: number): { hit: boolean; waitMs: number; endsAt: number } {
    const hit = this.#cache.delete(context);
    this.#cache.add(context);
    const [oldest] = this.#cache;
    if (oldest !== undefined && this.#cache.size > this.#world.cached) this.#cache.delete(oldest);
    const beginsAt = Math.max(now, this.#freeAt);
    this.#freeAt = beginsAt + (hit ? this.#world.hitMs : this.#world.missMs);
    this.#ends.push(this.#freeAt);
    this.load.running++;
    return { hit, waitMs: beginsAt - now, endsAt: this.#freeAt };
  }
}
