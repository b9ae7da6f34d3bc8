import type { Confidence } from '../schema/question-fields.ts';
import { indexOfHighest } from '../tasks/logprobs.ts';

/** Holds the answer to a question with options as a probability distribution. */
export interface Distribution {
  /** Probability of each option, in the order of the options; they sum to 1. */
  probabilities: readonly number[];
  /** Index of the most probable option, the first on a tie. */
  best: number;
  /** Mean of the option indices, weighted by probability: the value of a score. */
  expected: number;
  /**
   * Confidence from 0 (all options equally likely) to 1 (one option certain), by one of the formulas of `CONFIDENCES`.
   */
  confidence: number;
}

/**
 * Converts log-probabilities to a distribution.
 *
 * @param logprobs natural logarithms of the options' probabilities, which sum to 1
 * @param confidence name of the formula for the confidence
 */
export function distributionOf(logprobs: readonly number[], confidence: Confidence): Distribution {
  const probabilities = logprobs.map(Math.exp);
  return {
    probabilities,
    best: indexOfHighest(logprobs),
    expected: probabilities.reduce((sum, p, level) => sum + p * level, 0),
    confidence: FORMULAS[confidence](probabilities),
  };
}

/**
 * Formulas of the confidence in an answer. `entropy`: 1 - H / ln k, with H the entropy of k probabilities, as in
 * Ollama's documentation. `margin`: the distance of the highest probability from an even guess, (max p - 1/k) / (1 -
 * 1/k). A single option has confidence 1.
 */
const FORMULAS: Record<Confidence, (probabilities: readonly number[]) => number> = {
  entropy(probabilities) {
    if (probabilities.length === 1) return 1;
    const entropy = probabilities.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
    return within01(1 - entropy / Math.log(probabilities.length));
  },
  margin(probabilities) {
    if (probabilities.length === 1) return 1;
    const even = 1 / probabilities.length;
    return within01((Math.max(...probabilities) - even) / (1 - even));
  },
};

/** Clamps a value to [0, 1], which rounding may exceed by one part in 10^16. */
function within01(value: number): number {
  return Math.min(1, Math.max(0, value));
}
