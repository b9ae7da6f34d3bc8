import { LOAD, type Load, passOver } from '../../adapters/workers/upstreams/load.ts';
import type { SimulatedUpstream } from './simulated-upstream.ts';

/** What a policy may look at. `ranked`: the upstreams a context prefers, best first. */
export interface View {
  upstreams: readonly SimulatedUpstream[];
  ranked(context: number): readonly SimulatedUpstream[];
  /** Load of the whole fleet. */
  total: Load;
  now: number;
  random(): number;
}

export type Policy = (context: number, view: View) => SimulatedUpstream;

export const POLICIES: Record<string, Policy> = {
  random: (_, { upstreams, random }) => upstreams[Math.floor(random() * upstreams.length)]!,

  /** Of all upstreams the one with the shortest queue, chance deciding between equals: what a perfect balancer would do. */
  'least loaded': (_, { upstreams, random }) => {
    const from = Math.floor(random() * upstreams.length);
    let best = upstreams[from]!;
    for (let i = 1; i < upstreams.length && best.queued > 0; i++) {
      const upstream = upstreams[(from + i) % upstreams.length]!;
      if (upstream.queued < best.queued) best = upstream;
    }
    return best;
  },

  rendezvous: (context, { ranked }) => ranked(context)[0]!,

  /** What the edge does. */
  'bounded rendezvous': (context, { ranked, total, upstreams, now }) =>
    passOver(ranked(context), (upstream) => upstream.load.value(now), total.value(now) / upstreams.length, LOAD)[0]!,
};
