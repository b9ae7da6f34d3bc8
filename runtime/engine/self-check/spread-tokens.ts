/**
 * Returns `count` token ids scattered over the vocabulary, for test prompts: a fixed series, from its index `from` on.
 */
export function spreadTokens(vocabSize: number, count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => ((from + index + 1) * 7919) % vocabSize);
}
