import { Load } from '../../adapters/workers/upstreams/load.ts';
import { at } from '../../lib/at.ts';
import type { World } from './world.ts';

/** Simulates an upstream, which answers one request at a time and has a queue and a cache of contexts. */
export class SimulatedUpstream {
  readonly name: string;
  readonly weight = 1;
  readonly load: Load;
  readonly #world: World;
  /** Times at which the requests end, earliest first, in milliseconds. The first `#ended` of them have ended. */
  readonly #ends: number[] = [];
  #ended = 0;
  #freeAt = 0;
  /** Cached contexts, least recently used first. */
  readonly #cache = new Set<number>();

  constructor(name: string, world: World, memoryMs: number) {
    this.name = name;
    this.#world = world;
    this.load = new Load(0, memoryMs);
  }

  get queued(): number {
    return this.#ends.length - this.#ended;
  }

  /** Ends the requests whose end time is not after `now`, and calls `onEnd` with each of these times. */
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
