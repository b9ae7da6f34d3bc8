import * as v from 'valibot';
import type { Clock } from '../../../lib/clock.ts';
import { readBytes } from '../../../lib/json/body.ts';
import { Device } from '../../../lib/schema/metrics.ts';
import { afterFailure, afterProbe, afterSuccess, type Breaker, NEW_BREAKER } from './breaker.ts';
import { Load } from './load.ts';
import type { EdgeReport, FleetStatus, UpstreamReport } from './report.ts';
import type { Upstream } from './upstream.ts';

export interface HealthDeps {
  upstreams: readonly Upstream[];
  fetch: typeof fetch;
  clock: Clock;
}

/** Milliseconds without a report after which an edge isolate counts as stopped, and its requests as ended. */
const EDGE_GONE_MS = 30_000;
const PROBE_DEADLINE_MS = 2_000;
/**
 * Largest number of upstreams that one round probes, which keeps a large fleet from causing a burst. Upstreams whose
 * last probe is oldest come first.
 */
const PROBES_A_ROUND = 100;

/** Largest answer to a probe that is read, in bytes; it lists a few devices, each with a reason. */
const MOST_HEALTH_BYTES = 64 * 1024;

/** Describes the members of an upstream's `GET /health` that are read (docs/model-api.md, M-4). */
const UpstreamHealth = v.object({
  status: v.optional(v.string()),
  state: v.optional(v.string()),
  active_model: v.string(),
  /** Only of a box that holds several models. */
  models: v.optional(v.array(v.object({ id: v.string(), state: v.string(), status: v.string() }))),
  device: v.optional(Device),
});

/**
 * Requests `/health` of an upstream and returns the models that it can answer with, and its device. Throws if it does
 * not answer within two seconds, or if its engine does not respond.
 */
export async function askHealth(
  { url }: Upstream,
  fetch: HealthDeps['fetch'],
): Promise<{ active: readonly string[]; device: Device | undefined }> {
  const response = await fetch(`${url}/health`, {
    signal: AbortSignal.timeout(PROBE_DEADLINE_MS),
    redirect: 'manual',
  });
  const text = new TextDecoder().decode(await readBytes(response.body, MOST_HEALTH_BYTES));
  const { models, active_model: only, state, status = '', device } = v.parse(UpstreamHealth, JSON.parse(text));
  if (!response.ok) throw new Error(`status ${response.status}`);
  const loaded = (models ?? [{ id: only, state, status }]).filter((one) => one.state === 'loaded');
  const answering = loaded.filter((one) => one.status !== 'error');
  if (loaded.length > 0 && answering.length === 0) throw new Error('the engine does not respond');
  // Older boxes report no state.
  const active = state === undefined ? [only].filter((id) => id !== 'none') : answering.map(({ id }) => id);
  return { active, device };
}

interface Known {
  upstream: Upstream;
  breaker: Breaker;
  load: Load;
  active?: readonly string[];
  device?: Device | undefined;
  probedAt: number;
}

interface Edge {
  seenAt: number;
  running: Map<Known, number>;
}

/**
 * Merges the reports of all edge isolates into the shared state of the fleet: the breaker, the load and the loaded
 * model of every upstream. The state is in memory only, because lost state is soon observed again.
 */
export class FleetHealth {
  readonly #deps: HealthDeps;
  readonly #upstreams: Map<string, Known>;
  readonly #edges = new Map<string, Edge>();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    const now = deps.clock.now();
    this.#upstreams = new Map(
      deps.upstreams.map((upstream) => [
        upstream.name,
        { upstream, breaker: NEW_BREAKER, load: new Load(now), probedAt: 0 },
      ]),
    );
  }

  /** Adds the report of one edge isolate. Returns the state that all isolates share. */
  report({ edge: id, upstreams }: EdgeReport): FleetStatus {
    const now = this.#deps.clock.now();
    this.#forgetGoneEdges(now);
    const edge = this.#edges.get(id) ?? { seenAt: now, running: new Map<Known, number>() };
    edge.seenAt = now;
    this.#edges.set(id, edge);
    for (const [name, seen] of Object.entries(upstreams)) {
      const known = this.#upstreams.get(name);
      if (known) takeIn(known, edge, seen, now);
    }
    return this.#status(now);
  }

  /**
   * Requests `/health` of up to 100 upstreams, those not probed for the longest time first, each with a deadline of 2
   * seconds. Records loaded models, devices and failures.
   */
  async probe(): Promise<void> {
    const byAge = [...this.#upstreams.values()].sort((a, b) => a.probedAt - b.probedAt);
    await Promise.all(byAge.slice(0, PROBES_A_ROUND).map((known) => this.#probe(known)));
  }

  /** Tells whether any edge isolate has reported within the last 30 seconds. */
  watched(): boolean {
    this.#forgetGoneEdges(this.#deps.clock.now());
    return this.#edges.size > 0;
  }

  async #probe(known: Known): Promise<void> {
    const { fetch, clock } = this.#deps;
    known.probedAt = clock.now();
    try {
      const { active, device } = await askHealth(known.upstream, fetch);
      known.active = active;
      known.device = device;
      known.breaker = afterProbe(known.breaker, clock.now());
    } catch {
      delete known.active;
      known.breaker = afterFailure(known.breaker, clock.now());
    }
  }

  #forgetGoneEdges(now: number): void {
    for (const [id, edge] of this.#edges) {
      if (now - edge.seenAt < EDGE_GONE_MS) continue;
      for (const [known, running] of edge.running) known.load.running -= running;
      this.#edges.delete(id);
    }
  }

  #status(now: number): FleetStatus {
    const status: FleetStatus = {};
    for (const [name, { breaker, load, active, device }] of this.#upstreams) {
      const value = load.value(now);
      if (breaker === NEW_BREAKER && value < 0.5 && active === undefined) continue;
      const { failures, openings, opensUntil } = breaker;
      const opensForMs = opensUntil === null ? null : Math.max(0, opensUntil - now);
      status[name] = {
        failures,
        openings,
        opensForMs,
        load: value,
        ...(active === undefined ? {} : { active }),
        ...(device === undefined ? {} : { device }),
      };
    }
    return status;
  }
}

function takeIn(known: Known, edge: Edge, seen: UpstreamReport, now: number): void {
  known.load.running += seen.running - (edge.running.get(known) ?? 0);
  edge.running.set(known, seen.running);
  if (seen.ended > 0) known.load.end(now, seen.ended);
  if (seen.answered) known.breaker = afterSuccess();
  for (let i = 0; i < seen.failed; i++) known.breaker = afterFailure(known.breaker, now);
}
