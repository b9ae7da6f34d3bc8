import { Random } from '../../runtime/engine/random.ts';

/** Workload W: a context of 1,024 tokens, tasks of 24 tokens, 6 answer tokens each. */
export const W = { context: 1024, task: 24, answer: 6 } as const;

/** Returns random ordinary tokens of every shape's vocabulary: none of the 256 bytes, no special ones. */
export function randomTokens(count: number, seed: number): number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => 300 + Math.floor(random.uniform() * 65_000));
}
