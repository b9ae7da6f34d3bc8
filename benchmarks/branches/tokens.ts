import { Random } from '../../runtime/engine/random.ts';

/** Workload W, in tokens: a context of 1,024, tasks of 24 each, and answers of 6 each. */
export const W = { context: 1024, task: 24, answer: 6 } as const;

/** Returns the ids of random ordinary tokens in every shape's vocabulary: not single bytes, and not special tokens. */
export function randomTokens(count: number, seed: number): number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => 300 + Math.floor(random.uniform() * 65_000));
}
