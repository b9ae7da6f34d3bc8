import { describe, expect, it } from 'vitest';
import { type Hash64, hash64 } from '../../../lib/affinity.ts';
import { rendezvous } from './rendezvous.ts';

const fleet = (count: number, weight = 1) => Array.from({ length: count }, (_, i) => ({ name: `npu-${i}`, weight }));

async function keys(count: number): Promise<Hash64[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => hash64(`context ${i}`)));
}

describe('rendezvous', () => {
  it('does not depend on the order of the list', async () => {
    const upstreams = fleet(20);
    for (const key of await keys(50)) {
      expect(rendezvous(key, upstreams)).toEqual(rendezvous(key, upstreams.toReversed()));
    }
  });

  it('moves only the keys of a box that leaves, and spreads them over the others', async () => {
    const upstreams = fleet(10);
    const left = upstreams.filter((upstream) => upstream.name !== 'npu-3');
    const heirs = new Set<string>();
    for (const key of await keys(2_000)) {
      const [before, second] = rendezvous(key, upstreams);
      const after = rendezvous(key, left)[0];
      expect(after).toBe(before?.name === 'npu-3' ? second : before);
      if (before?.name === 'npu-3') heirs.add(after!.name);
    }
    expect(heirs.size).toBe(9);
  });

  it('gives every box its share, also the weighted one', async () => {
    const upstreams = [...fleet(9), { name: 'big', weight: 3 }];
    const first = new Map<string, number>();
    const all = await keys(24_000);
    for (const key of all) {
      const [upstream] = rendezvous(key, upstreams);
      first.set(upstream!.name, (first.get(upstream!.name) ?? 0) + 1);
    }
    // Allows five standard deviations of a binomial distribution. The weights sum to 12.
    for (const upstream of upstreams) {
      const share = upstream.weight / 12;
      const deviation = Math.sqrt(all.length * share * (1 - share));
      expect(Math.abs(first.get(upstream.name)! - all.length * share)).toBeLessThan(5 * deviation);
    }
  });
});
