/** Returns `count` tokens spread over the vocabulary, those from the `from`-th on. */
export function spreadTokens(vocabSize: number, count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => ((from + index + 1) * 7919) % vocabSize);
}
