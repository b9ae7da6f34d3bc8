import type { QuestionKind, TaskAnswer } from '../backend.ts';
import type { ConfidenceFormula } from '../schema/question-fields.ts';
import { indexOfHighest } from '../tasks/logprobs.ts';

/** Holds the answer to a question with options as a probability distribution. */
export interface Distribution {
  /** Probability of each option, in the order of the options; they sum to 1. */
  probabilities: readonly number[];
  /** Index of the most probable option, the first on a tie. */
  best: number;
  /** Mean of the option indices, weighted by probability: the value of a score. */
  expected: number;
  /** Confidence from 0 (all options equally likely) to 1 (one option certain), by a `ConfidenceFormula`. */
  confidence: number;
}

/**
 * Converts the answer to a question with options to a distribution.
 *
 * @param kind kind of the question
 * @param confidence formula for the confidence; `margin` is `distance` for a score, as TypeSafe has it
 */
export function distributionOf(
  { optionLogprobs }: Pick<TaskAnswer, 'optionLogprobs'>,
  kind: QuestionKind,
  confidence: ConfidenceFormula,
): Distribution {
  // Every question with options asks for them.
  const logprobs = optionLogprobs!;
  const probabilities = logprobs.map(Math.exp);
  const margin = kind === 'score' ? 'distance' : 'lead';
  const formula = confidence === 'margin' ? margin : confidence;
  return {
    probabilities,
    best: indexOfHighest(logprobs),
    expected: expected(probabilities),
    // A single option is certain. Rounding may exceed the bounds by one part in 10^16.
    confidence: probabilities.length === 1 ? 1 : Math.min(1, Math.max(0, confidenceOf(probabilities, formula))),
  };
}

/** Computes the confidence in the likeliest of at least two options. */
function confidenceOf(p: readonly number[], formula: Exclude<ConfidenceFormula, 'margin'>): number {
  const count = p.length;
  const highest = Math.max(...p);
  if (typeof formula === 'object') {
    const [least, largest, found] = [formula.deviation, (count - 1) / 2, deviation(p)];
    return largest <= least ? Number(found <= least) : (largest - found) / (largest - least);
  }
  switch (formula) {
    case 'entropy':
      return 1 - p.reduce((sum, one) => sum - (one > 0 ? one * Math.log(one) : 0), 0) / Math.log(count);
    case 'lead':
      return (highest - 1 / count) / (1 - 1 / count);
    case 'highest':
      return highest;
    case 'distance':
      return 1 - fromLikeliest(p) / (p.reduce((sum, _, level) => sum + Math.abs(level - (count - 1) / 2), 0) / count);
    case 'spread':
      return 1 - fromLikeliest(p) / (count - 1);
  }
}

/** Returns the mean of the levels, weighted by probability. */
function expected(p: readonly number[]): number {
  return p.reduce((sum, one, level) => sum + one * level, 0);
}

/**
 * Returns the mean distance of the levels from the likeliest one: a level far from it counts more than one beside it.
 */
function fromLikeliest(p: readonly number[]): number {
  const best = indexOfHighest(p);
  return p.reduce((sum, one, level) => sum + one * Math.abs(level - best), 0);
}

/** Returns the standard deviation of the level. */
function deviation(p: readonly number[]): number {
  const mean = expected(p);
  return Math.sqrt(p.reduce((sum, one, level) => sum + one * (level - mean) ** 2, 0));
}
