import { at } from '../at.ts';
import { indexOfHighest } from '../tasks/logprobs.ts';
import { atTemperature, type CalibrationErrors, type TemperatureFit } from './calibration.ts';

/**
 * Holds the model's answer to one labelled question, and the right answer. An extracted value counts as a question with
 * two options: right and wrong.
 */
export interface Labelled {
  /** Uncalibrated log-probabilities of the options. */
  logprobs: readonly number[];
  /** Index of the right option. */
  label: number;
  /** True for an extracted value, whose options are right and wrong. */
  value?: true;
}

/** Returns the confidence of an answer, the probability of its likeliest option, and whether that is right. */
export function outcomeOf({ logprobs, label, value }: Labelled): { confidence: number; right: boolean } {
  // An extracted value is answered however improbable it is.
  const best = value ? 0 : indexOfHighest(logprobs);
  return { confidence: Math.exp(at(logprobs, best)), right: best === label };
}

/** Smallest number of labels of one kind to which a temperature is fitted. */
export const FEWEST_LABELS = 20;

const FOLDS = 5;

/**
 * Fits the temperature of one kind of answer. The gain is measured by cross-validation: each of five folds is scaled
 * with the temperature fitted to the other four. If that does not lower the expected calibration error, the temperature
 * stays 1.
 *
 * @param samples answers of this kind, at least `FEWEST_LABELS`
 */
export function fitTemperature(samples: readonly Labelled[]): TemperatureFit {
  const folds = Array.from({ length: FOLDS }, (_, fold) => {
    const isOut = (_: Labelled, i: number) => i % FOLDS === fold;
    const temperature = bestTemperature(samples.filter((sample, i) => !isOut(sample, i)));
    return samples.filter(isOut).map((sample) => scaled(sample, temperature));
  });
  const [before, after] = [errorsOf(samples), errorsOf(folds.flat())];
  if (after.ece >= before.ece) return { temperature: 1, labels: samples.length, before, after: before };
  return { temperature: round(bestTemperature(samples)), labels: samples.length, before, after };
}

/** Returns a sample with its log-probabilities scaled by a temperature. */
export function scaled<TSample extends Labelled>(sample: TSample, temperature: number): TSample {
  return { ...sample, logprobs: atTemperature(sample.logprobs, temperature) };
}

/**
 * Finds the temperature from 0.1 to 10 with the lowest negative log-likelihood, by golden-section search over the
 * temperature's logarithm. Assumes that the loss has one minimum there.
 */
function bestTemperature(samples: readonly Labelled[]): number {
  const loss = (log: number) => {
    const temperature = Math.exp(log);
    return samples.reduce((sum, { logprobs, label }) => sum - at(atTemperature(logprobs, temperature), label), 0);
  };
  const ratio = (Math.sqrt(5) - 1) / 2;
  let [low, high] = [Math.log(0.1), Math.log(10)];
  while (high - low > 1e-4) {
    const [left, right] = [high - ratio * (high - low), low + ratio * (high - low)];
    if (loss(left) < loss(right)) high = right;
    else low = left;
  }
  return Math.exp((low + high) / 2);
}

/** Number of bins of `reliabilityBins`, and thus of the expected calibration error. */
export const BINS = 10;

export interface Bin {
  /** Number of answers in the bin. */
  count: number;
  /** Mean probability of their likeliest options; 0 for an empty bin. */
  confidence: number;
  /** Share of these answers whose likeliest option was right; 0 for an empty bin. */
  accuracy: number;
}

/**
 * Sorts answers into `BINS` bins of equal width by the probability of their likeliest option, and summarises each bin.
 * The first bin begins at probability 0.
 */
export function reliabilityBins(samples: readonly Labelled[]): Bin[] {
  const answers = samples.map(outcomeOf);
  return Array.from({ length: BINS }, (_, bin) => {
    const inside = answers.filter(({ confidence }) => Math.min(BINS - 1, Math.floor(confidence * BINS)) === bin);
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
    return {
      count: inside.length,
      confidence: mean(inside.map(({ confidence }) => confidence)),
      accuracy: mean(inside.map(({ right }) => Number(right))),
    };
  });
}

/**
 * Computes the expected calibration error and the Brier score, rounded to four decimals. The former (Naeini et al.
 * 2015) is the gap between confidence and accuracy of each bin, weighted by its share of the answers. The latter (Brier
 * 1950) is the squared error of the probabilities, summed over the options, averaged over the questions.
 *
 * @param samples at least one answer
 */
export function errorsOf(samples: readonly Labelled[]): CalibrationErrors {
  const gaps = reliabilityBins(samples).map(
    ({ count, confidence, accuracy }) => count * Math.abs(confidence - accuracy),
  );
  const squares = samples.map(({ logprobs, label }) =>
    logprobs.reduce((sum, logprob, i) => sum + (Math.exp(logprob) - Number(i === label)) ** 2, 0),
  );
  const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / samples.length;
  return { ece: round(total(gaps)), brier: round(total(squares)) };
}

/** Rounds to four decimals; the labels are too few for more digits to mean anything. */
function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
