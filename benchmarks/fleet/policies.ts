import { LOAD, type Load, overloadedLast } from '../../adapters/workers/upstreams/load.ts';
import { at } from '../../lib/at.ts';
import type { SimulatedUpstream } from './simulated-upstream.ts';

/** Holds the state on which a routing policy bases its choice. */
export interface View {
  upstreams: readonly SimulatedUpstream[];
  /** Returns the `RANKED` upstreams (`simulate.ts`) that the edge tries first for a context, in that order. */
  ranked(context: number): readonly SimulatedUpstream[];
  /** Total load of the fleet. */
  total: Load;
  now: number;
  random(): number;
}

export type Policy = (context: number, view: View) => SimulatedUpstream;

export const POLICIES: Record<string, Policy> = {
  random: (_, { upstreams, random }) => at(upstreams, Math.floor(random() * upstreams.length)),

  /** Returns the upstream with the shortest queue, a random one if there are several: perfect load balancing. */
  'least loaded': (_, { upstreams, random }) => {
    const from = Math.floor(random() * upstreams.length);
    let best = at(upstreams, from);
    for (let i = 1; i < upstreams.length && best.queued > 0; i++) {
      const upstream = at(upstreams, (from + i) % upstreams.length);
      if (upstream.queued < best.queued) best = upstream;
    }
    return best;
  },

  rendezvous: (context, { ranked }) => at(ranked(context), 0),

  /** Returns the upstream that the edge of `adapters/workers` would choose. */
  'bounded rendezvous': (context, { ranked, total, upstreams, now }) =>
    at(
      overloadedLast(
        ranked(context),
        (upstream) => upstream.load.value(now),
        total.value(now) / upstreams.length,
        LOAD,
      ),
      0,
    ),
};
