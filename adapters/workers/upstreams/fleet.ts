import type { Device } from '../../../lib/backend.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Hash64 } from '../../../lib/prompt/affinity.ts';
import { afterFailure, afterSuccess, type Breaker, type BreakerState, breakerState, NEW_BREAKER } from './breaker.ts';
import { Load, meanLoad, overloadedLast } from './load.ts';
import type { EdgeReport, FleetStatus, UpstreamReport, UpstreamStatus } from './report.ts';
import type { Upstream } from './upstream.ts';

export interface FleetDeps {
  upstreams: readonly Upstream[];
  /** Sends a report to the fleet's Durable Object. Resolves to the state that all isolates share. */
  report(report: EdgeReport): Promise<FleetStatus>;
  /** Keeps the Worker alive until `work`, a report, has settled. */
  waitUntil(work: Promise<unknown>): void;
  clock: Clock;
  /** Random id that identifies this isolate in its reports. */
  edge: string;
}

/**
 * Names how an attempt at an upstream ended. `failed`: the upstream was at fault. `late`: the deadline passed, which
 * counts as a failure, too: an upstream that answers others in between is not taken out of use by it. `left`: the
 * caller left, which says nothing about the upstream. `answered`: it sent any other answer, also `overloaded` or an
 * error about the request.
 */
export type Outcome = 'answered' | 'failed' | 'late' | 'left';

/** Milliseconds between two reports of this isolate. */
const REPORT_EVERY_MS = 1_000;
/** Minimum milliseconds between two reports if the second one has a failure; replaces `REPORT_EVERY_MS` then. */
const REPORT_FAILURE_AFTER_MS = 50;
/** Milliseconds after which a report without an answer counts as lost, so that the next one can be sent. */
const REPORT_LOST_MS = 5_000;

interface Seen {
  readonly upstream: Upstream;
  readonly load: Load;
  /** Load on the upstream from other edge isolates, as last reported. */
  others: number;
  breaker: Breaker;
  active: readonly string[] | undefined;
  device: Device | undefined;
  /** Observations that have not been reported yet. */
  unreported: Omit<UpstreamReport, 'running'>;
  /** Number of running requests that was last reported. */
  reportedRunning: number;
}

/**
 * Tracks the state of the upstreams for this isolate. Attempts of this isolate count at once; those of others arrive
 * about a second later, with a report's answer. No method waits for a report.
 */
export class Fleet {
  readonly #deps: FleetDeps;
  readonly #seen: Map<string, Seen>;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reporting = false;

  constructor(deps: FleetDeps) {
    this.#deps = deps;
    const now = deps.clock.now();
    this.#seen = new Map(deps.upstreams.map((upstream) => [upstream.name, unseen(upstream, now)]));
  }

  /** Tells whether any upstream is configured for this model. */
  serves(model: string): boolean {
    return this.#deps.upstreams.some((upstream) => fits(upstream, model));
  }

  /**
   * Returns the model for a request that names none: one that an upstream in use has loaded and that the caller may
   * use. While that is unknown, the first that an upstream is configured for. undefined if no upstream has a model.
   *
   * @param allows tells whether the caller may use a model
   */
  activeModel(allows: (model: string) => boolean = () => true): string | undefined {
    const usable = this.status().filter(({ state }) => state !== 'open');
    const loaded = usable.flatMap(({ active }) => active ?? []);
    return loaded.find(allows) ?? loaded[0] ?? usable.find(({ active }) => active === undefined)?.upstream.models[0];
  }

  /**
   * Returns the upstreams that are configured for a model (or all, if the request names none), best first. First come
   * those that have it loaded (or any model), in the order of rendezvous hashing with bounded load, then the others.
   * Omits upstreams whose breaker is open, and half-open ones on which a request of this isolate is running.
   *
   * @param key hash of the prefix that the request shares with others (`taskPrefix`), or of its session
   */
  candidates(model: string | undefined, key: Hash64): Upstream[] {
    const now = this.#deps.clock.now();
    const ready: Upstream[] = [];
    const rest: Upstream[] = [];
    for (const seen of this.#seen.values()) {
      if (!fits(seen.upstream, model) || !admits(seen, now)) continue;
      const { active } = seen;
      const loaded = active === undefined || (model === undefined ? active.length > 0 : active.includes(model));
      (loaded ? ready : rest).push(seen.upstream);
    }
    const load = (upstream: Upstream) => this.#load(upstream, now);
    return [...overloadedLast(rendezvous(key, ready), load, meanLoad(ready, load)), ...rendezvous(key, rest)];
  }

  /**
   * Counts a new attempt as running on an upstream. Returns a function that the caller must call with the outcome when
   * the attempt ends; further calls of that function have no effect.
   */
  begin(upstream: Upstream): (outcome: Outcome) => void {
    const seen = this.#seen.get(upstream.name)!;
    seen.load.running++;
    this.#reportSoon(REPORT_EVERY_MS);
    let ended = false;
    return (outcome) => {
      if (ended) return;
      ended = true;
      const now = this.#deps.clock.now();
      seen.load.running--;
      seen.load.end(now);
      seen.unreported.ended++;
      if (outcome === 'answered') {
        seen.breaker = afterSuccess();
        Object.assign(seen.unreported, { answered: true, failed: 0 });
      } else if (outcome !== 'left') {
        seen.breaker = afterFailure(seen.breaker, now);
        seen.unreported.failed++;
      }
      this.#reportSoon(outcome === 'failed' || outcome === 'late' ? REPORT_FAILURE_AFTER_MS : REPORT_EVERY_MS);
    };
  }

  /**
   * Sends a report, whose answer updates `status`, unless this isolate sent one within a second or waits for its
   * answer.
   */
  refresh(): void {
    this.#reportSoon(REPORT_EVERY_MS);
  }

  /**
   * Returns each upstream with the state of its breaker, its loaded models (`active`, the last one first) and its
   * device. `active` and `device` are undefined while they are unknown.
   */
  status(): (Pick<Seen, 'upstream' | 'active' | 'device'> & { state: BreakerState })[] {
    const now = this.#deps.clock.now();
    return [...this.#seen.values()].map(({ upstream, breaker, active, device }) => ({
      upstream,
      state: breakerState(breaker, now),
      active,
      device,
    }));
  }

  #load(upstream: Upstream, now: number): number {
    const seen = this.#seen.get(upstream.name)!;
    return seen.others + seen.load.value(now);
  }

  #reportSoon(afterMs: number): void {
    const { clock, waitUntil } = this.#deps;
    const since = clock.now() - this.#reportedAt;
    if (since < afterMs || (this.#reporting && since < REPORT_LOST_MS)) return;
    this.#reporting = true;
    this.#reportedAt = clock.now();
    waitUntil(
      this.#report()
        .catch(() => {}) // If a report fails, every upstream keeps its last known state; retries cover stale states.
        .finally(() => {
          this.#reporting = false;
        }),
    );
  }

  async #report(): Promise<void> {
    const { report, clock, edge } = this.#deps;
    const now = clock.now();
    const own = new Map<string, number>();
    const upstreams: Record<string, UpstreamReport> = {};
    for (const [name, seen] of this.#seen) {
      own.set(name, seen.load.value(now));
      const { running } = seen.load;
      if (running > 0 || seen.reportedRunning > 0 || seen.unreported.ended > 0)
        upstreams[name] = { running, ...seen.unreported };
      seen.reportedRunning = running;
      seen.unreported = nothingToReport();
    }
    const status = await report({ edge, upstreams });
    for (const [name, seen] of this.#seen) applyStatus(seen, status[name], own.get(name)!, clock.now());
  }
}

function nothingToReport(): Seen['unreported'] {
  return { ended: 0, answered: false, failed: 0 };
}

function unseen(upstream: Upstream, now: number): Seen {
  const load = new Load(now);
  return {
    upstream,
    load,
    others: 0,
    breaker: NEW_BREAKER,
    active: undefined,
    device: undefined,
    unreported: nothingToReport(),
    reportedRunning: 0,
  };
}

function fits(upstream: Upstream, model: string | undefined): boolean {
  return model === undefined || upstream.models.some((one) => one === model);
}

/**
 * Tells whether a request may be sent to an upstream now. A half-open one gets one request at a time from each isolate.
 */
function admits(seen: Seen, now: number): boolean {
  const state = breakerState(seen.breaker, now);
  return state === 'closed' || (state === 'half-open' && seen.load.running === 0);
}

/** Sets the state to the one that all isolates share, then adds what this isolate has observed since its report. */
function applyStatus(seen: Seen, status: UpstreamStatus | undefined, own: number, now: number): void {
  seen.others = Math.max(0, (status?.load ?? 0) - own);
  seen.active = status?.active;
  seen.device = status?.device;
  seen.breaker = status
    ? {
        failures: status.failures,
        openings: status.openings,
        opensUntil: status.opensForMs === null ? null : now + status.opensForMs,
      }
    : NEW_BREAKER;
  if (seen.unreported.answered) seen.breaker = afterSuccess();
  for (let i = 0; i < seen.unreported.failed; i++) seen.breaker = afterFailure(seen.breaker, now);
}

/** Describes the members of an upstream that rendezvous hashing uses. */
interface Weighted {
  readonly name: string;
  /** Share of the keys that the upstream gets, relative to the weights of the others; above 0. */
  readonly weight: number;
}

/**
 * Returns the upstreams sorted by their score for `key`, highest first (rendezvous hashing). Every edge isolate
 * computes the same order without communication. When an upstream is added or removed, only the keys of that upstream
 * move. Sources: Thaler & Ravishankar, "Using name-based mappings to increase hit rates", 1998; the weighted score -w /
 * ln(u) is from Schindelhauer & Schomaker, "Weighted Distributed Hash Tables", 2005.
 */
export function rendezvous<B extends Weighted>(key: Hash64, upstreams: readonly B[]): B[] {
  return upstreams
    .map((upstream) => ({ upstream, score: -upstream.weight / Math.log(uniform(key, seedOf(upstream.name))) }))
    .sort((a, b) => b.score - a.score || (a.upstream.name < b.upstream.name ? -1 : 1))
    .map(({ upstream }) => upstream);
}

/** Returns a pseudorandom number in (0, 1), with 52 bits, from a key and an upstream's seed. */
function uniform(key: Hash64, seed: number): number {
  const high = mix(key[0] ^ seed);
  const low = mix(key[1] ^ Math.imul(high, 0x9e3779b1) ^ seed);
  return ((high >>> 6) * 2 ** 26 + (low >>> 6) + 0.5) / 2 ** 52;
}

/**
 * Mixes 32 bits with the finaliser of MurmurHash3 (Appleby). Flipping any input bit flips each output bit with a
 * probability of one half.
 */
function mix(bits: number): number {
  let h = bits;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Returns the seed of an upstream: the FNV-1a hash of its name, mixed with `mix`, because the hashes of names that
 * differ only in their last character are similar.
 */
function seedOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return mix(hash);
}
