import { Random } from '../../runtime/engine/random.ts';

/** Describes workload W by numbers of tokens: of the context, of each task, and of each answer. */
export const W = { context: 1024, task: 24, answer: 6 } as const;

/** Returns random token ids that every shape's vocabulary has. Single bytes and special tokens are excluded. */
export function randomTokens(count: number, seed: number): number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => 300 + Math.floor(random.uniform() * 65_000));
}
