import { at } from '../at.ts';
import type { QuestionKind } from '../backend.ts';
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
 * @param kind kind of the question
 * @param confidence name of the formula for the confidence
 */
export function distributionOf(logprobs: readonly number[], kind: QuestionKind, confidence: Confidence): Distribution {
  const probabilities = logprobs.map(Math.exp);
  const best = indexOfHighest(logprobs);
  const formula = confidence === 'margin' && kind === 'score' ? spread : FORMULAS[confidence];
  return {
    probabilities,
    best,
    expected: probabilities.reduce((sum, p, level) => sum + p * level, 0),
    // A single option is certain. Rounding may exceed the bounds by one part in 10^16.
    confidence: probabilities.length === 1 ? 1 : Math.min(1, Math.max(0, formula(probabilities, best))),
  };
}

/** Computes the confidence in the option `best` of at least two with the probabilities `p`. */
type Formula = (p: readonly number[], best: number) => number;

/**
 * Formulas of the confidence. `entropy`: 1 - H / ln k, with H the entropy of k probabilities, as in Ollama's
 * documentation. `margin`: the distance of the highest probability from an even guess, (max p - 1/k) / (1 - 1/k), as in
 * TypeSafe's; of a score, `spread`.
 */
const FORMULAS: Record<Confidence, Formula> = {
  entropy: (p) => 1 - p.reduce((sum, one) => sum - (one > 0 ? one * Math.log(one) : 0), 0) / Math.log(p.length),
  margin: (p, best) => (at(p, best) - 1 / p.length) / (1 - 1 / p.length),
};

/**
 * TypeSafe's confidence in a score: 1 - Σ p_i |i - m| / U, with m the most probable level and U the mean distance of k
 * levels from their middle. A probable level far from m counts more than one beside it.
 */
const spread: Formula = (p, best) => {
  const middle = (p.length - 1) / 2;
  const even = p.reduce((sum, _, level) => sum + Math.abs(level - middle), 0) / p.length;
  return 1 - p.reduce((sum, one, level) => sum + one * Math.abs(level - best), 0) / even;
};
