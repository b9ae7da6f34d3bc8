import { at } from '../at.ts';
import { binomialCdf, fewestLabels, upperBound } from './bounds.ts';
import type { GroupThreshold, Thresholds } from './calibration.ts';
import { type Labelled, outcomeOf } from './fit.ts';

/*
 * Thresholds of confidence with a guarantee: Learn then Test (Angelopoulos et al. 2021, arXiv 2110.01052) with exact
 * binomial tests and a fixed sequence of thresholds.
 */

/** Most thresholds that are tested for one group of questions. */
const MOST_THRESHOLDS = 20;

interface Targets {
  /** Largest share of wrong answers among the accepted ones. */
  target: number;
  /** Probability that the chosen threshold does not keep the target. */
  delta: number;
}

/**
 * Chooses the lowest threshold of which the labels prove that at most the target's share of accepted answers is wrong.
 * The thresholds to test and their order come from `chosenFrom` alone, so the proof needs no correction for their
 * number: they are tested one after the other on `tested`, down to the first that fails.
 */
export function certifiedThreshold(
  chosenFrom: readonly Labelled[],
  tested: readonly Labelled[],
  { target, delta }: Targets,
): GroupThreshold {
  const { length: labels } = tested;
  const none = { threshold: null, labels, accepted: 0, errors: 0, error_upper: null, coverage: 0 };
  const needed = fewestLabels(target, delta);
  if (labels < needed) {
    return { ...none, reason: `not enough labels: ${needed} without an error are needed, and there are ${labels}` };
  }
  const acceptedOf = counter(tested);
  let found: GroupThreshold | null = null;
  for (const threshold of sequence(chosenFrom, { target, least: needed / labels })) {
    const { accepted, errors } = acceptedOf(threshold);
    if (binomialCdf(errors, accepted, target) > delta) break;
    const error_upper = upperBound(errors, accepted, delta);
    found = { threshold, labels, accepted, errors, error_upper, coverage: accepted / labels };
  }
  return found ?? { ...none, reason: 'no threshold keeps the target error on these labels' };
}

/** Returns a function that counts the answers of at least a confidence, and the wrong ones of them. */
function counter(samples: readonly Labelled[]): (threshold: number) => { accepted: number; errors: number } {
  const outcomes = samples.map(outcomeOf).sort((a, b) => b.confidence - a.confidence);
  let errors = 0;
  const errorsAfter = outcomes.map(({ right }) => (right ? errors : ++errors));
  return (threshold) => {
    let [low, high] = [0, outcomes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(outcomes, middle).confidence >= threshold) low = middle + 1;
      else high = middle;
    }
    return { accepted: low, errors: errorsAfter[low - 1] ?? 0 };
  };
}

/**
 * Returns the thresholds to test: quantiles of the confidences that accept at least the share `least`, from the one
 * that is most likely to pass down to 0.
 */
function sequence(samples: readonly Labelled[], { target, least }: { target: number; least: number }): number[] {
  const acceptedOf = counter(samples);
  const confidences = samples.map((sample) => outcomeOf(sample).confidence).sort((a, b) => b - a);
  const candidates = new Map<number, number>();
  for (let i = 0; i < MOST_THRESHOLDS; i++) {
    const share = least + ((1 - least) * i) / (MOST_THRESHOLDS - 1);
    const index = Math.max(0, Math.ceil(share * confidences.length) - 1);
    const threshold = i === MOST_THRESHOLDS - 1 ? 0 : (confidences[index] ?? 0);
    const { accepted, errors } = acceptedOf(threshold);
    candidates.set(threshold, binomialCdf(errors, accepted, target));
  }
  const ordered = [...candidates].sort(([a], [b]) => b - a);
  const likeliest = ordered.reduce((best, [, chance], i) => (chance < at(ordered, best)[1] ? i : best), 0);
  return ordered.slice(likeliest).map(([threshold]) => threshold);
}

/** Describes an answer for its threshold. */
interface Answered {
  /** Group of its kind (`groupOf`), and of its own name. */
  groups: readonly string[];
  /** Probability of its likeliest option. */
  probability: number;
}

/** Returns the names of the groups whose threshold applies to a question: its own, or else that of its kind. */
export function groupsOf(kind: string, unsure: boolean, id: string | undefined): string[] {
  const own = unsure ? 'unsure' : kind;
  return id === undefined ? [own] : [`question:${id}`, own];
}

/**
 * Tells whether an answer may be automated if at most the share `maxError` of such answers may be wrong: true if it has
 * at least the threshold of the largest target that is small enough, null if nothing is certified.
 */
export function isAutomated(
  { targets }: Thresholds,
  { groups, probability }: Answered,
  maxError: number,
): boolean | null {
  const usable = targets
    .filter(({ target_error }) => target_error <= maxError)
    .sort((a, b) => b.target_error - a.target_error);
  for (const { groups: certified } of usable) {
    const found = groups.map((name) => certified[name]).find((group) => group !== undefined);
    if (found?.threshold !== undefined && found.threshold !== null) return probability >= found.threshold;
  }
  return null;
}
