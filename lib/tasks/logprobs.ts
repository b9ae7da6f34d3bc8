import { at } from '../at.ts';

/**
 * Lowest log-probability that the functions below return; lower ones are raised to it. e^-700 is still a double above
 * 0, so no probability becomes 0.
 */
const LEAST = -700;

/** Returns log(Σ exp(x)) without overflow; -Infinity for an empty list. */
export function logSum(values: readonly number[]): number {
  const highest = Math.max(...values);
  if (highest === Number.NEGATIVE_INFINITY) return highest;
  return highest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - highest), 0));
}

/** Shifts logarithms so that their exponentials sum to 1. Results below -700 become -700. */
export function normalised(logprobs: readonly number[]): number[] {
  const total = logSum(logprobs);
  return logprobs.map((logprob) => Math.max(LEAST, logprob - total));
}

/** Returns the natural logarithms of probabilities. Results below -700 become -700. */
export function logprobsOf(probabilities: readonly number[]): number[] {
  return probabilities.map((probability) => Math.max(LEAST, Math.log(probability)));
}

/**
 * Averages the answers to one question that was asked with its options in several orders. Returns the normalised mean
 * of the log-probabilities, which corresponds to the geometric mean of the probabilities.
 *
 * @param answers a list of log-probabilities for each order; index `i` is the same option in every list
 */
export function averaged(answers: readonly (readonly number[])[]): number[] {
  const [first = []] = answers;
  return normalised(first.map((_, i) => answers.reduce((sum, answer) => sum + at(answer, i), 0) / answers.length));
}

/** Returns the index of the highest value, the first on a tie; 0 for an empty list. */
export function indexOfHighest(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > at(values, best) ? i : best), 0);
}
