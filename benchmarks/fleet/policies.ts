import { LOAD, type Load, passOver } from '../../adapters/workers/boxes/load.ts';
import type { SimulatedBox } from './simulated-box.ts';

/** What a policy may look at. `ranked`: the boxes a context prefers, best first. */
export interface View {
  boxes: readonly SimulatedBox[];
  ranked(context: number): readonly SimulatedBox[];
  /** Load of the whole fleet. */
  total: Load;
  now: number;
  random(): number;
}

export type Policy = (context: number, view: View) => SimulatedBox;

export const POLICIES: Record<string, Policy> = {
  random: (_, { boxes, random }) => boxes[Math.floor(random() * boxes.length)]!,

  /** Of all boxes the one with the shortest queue, chance deciding between equals: what a perfect balancer would do. */
  'least loaded': (_, { boxes, random }) => {
    const from = Math.floor(random() * boxes.length);
    let best = boxes[from]!;
    for (let i = 1; i < boxes.length && best.queued > 0; i++) {
      const box = boxes[(from + i) % boxes.length]!;
      if (box.queued < best.queued) best = box;
    }
    return best;
  },

  rendezvous: (context, { ranked }) => ranked(context)[0]!,

  /** What the edge does. */
  'bounded rendezvous': (context, { ranked, total, boxes, now }) =>
    passOver(ranked(context), (box) => box.load.value(now), total.value(now) / boxes.length, LOAD)[0]!,
};
