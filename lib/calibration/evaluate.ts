import { at } from '../at.ts';
import { type Interval, mcnemar, pairedDifference, proportion, seededRandom } from './bounds.ts';
import { type Bin, type Labelled, outcomeOf, reliabilityBins } from './fit.ts';
import type { Sample } from './labels.ts';

/** Holds how well answers of a threshold's confidence do. */
export interface Coverage {
  threshold: number;
  accepted: number;
  errors: number;
  coverage: number;
  /** Share of wrong answers among the accepted ones. */
  error: Interval;
}

/** Holds how often each option was answered for each right option: `counts[right][answered]`. */
export interface Confusion {
  options: readonly string[];
  counts: readonly (readonly number[])[];
}

export interface QuestionReport {
  name: string;
  kind: string;
  labels: number;
  accuracy: Interval;
  brier: Interval;
  ece: Interval;
  /** Absent if the question did not have the same options each time, or more than `MOST_CONFUSED`. */
  confusion?: Confusion;
}

/** Holds the evaluation of answers against labels. All intervals are of 95%. */
export interface Evaluation {
  labels: number;
  accuracy: Interval;
  brier: Interval;
  ece: Interval;
  bins: readonly Bin[];
  coverage: readonly Coverage[];
  questions: readonly QuestionReport[];
}

/** Most options of a question whose confusion is reported. */
const MOST_CONFUSED = 24;
/** Most points of the curve of coverage and error. */
const MOST_POINTS = 40;
const RESAMPLES = 1000;
/** Most draws for one interval: of many answers, fewer resamples do. */
const MOST_DRAWS = 4_000_000;

/** Evaluates answers against their labels; at least one. */
export function evaluate(samples: readonly Sample[]): Evaluation {
  const byName = Map.groupBy(samples, ({ name }) => name);
  return {
    ...measures(samples),
    bins: reliabilityBins(samples),
    coverage: coverageOf(samples),
    questions: [...byName].map(([name, own]) => ({
      name,
      kind: at(own, 0).kind,
      ...measures(own),
      ...confusionOf(own),
    })),
  };
}

function measures(samples: readonly Labelled[]) {
  const right = samples.filter((sample) => outcomeOf(sample).right).length;
  return { labels: samples.length, accuracy: proportion(right, samples.length), ...errorIntervals(samples) };
}

const BIN_COUNT = 10;

/** Returns the Brier score and the expected calibration error with bootstrap intervals (percentiles, seeded). */
function errorIntervals(samples: readonly Labelled[]): { brier: Interval; ece: Interval } {
  const count = samples.length;
  const squares = samples.map(({ logprobs, label }) =>
    logprobs.reduce((sum, logprob, i) => sum + (Math.exp(logprob) - Number(i === label)) ** 2, 0),
  );
  const outcomes = samples.map(outcomeOf);
  const bins = outcomes.map(({ confidence }) => Math.min(BIN_COUNT - 1, Math.floor(confidence * BIN_COUNT)));
  const gaps = outcomes.map(({ confidence, right }) => confidence - Number(right));
  const sums = new Float64Array(BIN_COUNT);
  const measured = (indexOf: (i: number) => number) => {
    sums.fill(0);
    let brier = 0;
    for (let i = 0; i < count; i++) {
      const index = indexOf(i);
      brier += at(squares, index);
      const bin = at(bins, index);
      sums[bin] = (sums[bin] ?? 0) + at(gaps, index);
    }
    return { brier: brier / count, ece: sums.reduce((sum, gap) => sum + Math.abs(gap), 0) / count };
  };
  const random = seededRandom(count);
  const resamples = Math.max(50, Math.min(RESAMPLES, Math.floor(MOST_DRAWS / count)));
  const drawn = Array.from({ length: resamples }, () => measured(() => Math.floor(random() * count)));
  const all = measured((i) => i);
  const interval = (measure: 'brier' | 'ece'): Interval => {
    const sorted = drawn.map((one) => one[measure]).sort((a, b) => a - b);
    const quantile = (share: number) => at(sorted, Math.round(share * (sorted.length - 1)));
    // The resamples' calibration error is biased upwards, so the interval may lie above the estimate.
    const value = all[measure];
    return { value, low: Math.min(value, quantile(0.025)), high: Math.max(value, quantile(0.975)) };
  };
  return { brier: interval('brier'), ece: interval('ece') };
}

/** Returns the error and coverage at quantiles of the confidence, from the strictest threshold down. */
function coverageOf(samples: readonly Labelled[]): Coverage[] {
  const outcomes = samples.map(outcomeOf).sort((a, b) => b.confidence - a.confidence);
  const points = new Map<number, Coverage>();
  for (let i = 1; i <= MOST_POINTS; i++) {
    const { confidence: threshold } = at(outcomes, Math.ceil((i / MOST_POINTS) * outcomes.length) - 1);
    const accepted = outcomes.filter(({ confidence }) => confidence >= threshold);
    const errors = accepted.filter(({ right }) => !right).length;
    const coverage = accepted.length / outcomes.length;
    const error = proportion(errors, accepted.length);
    points.set(threshold, { threshold, accepted: accepted.length, errors, coverage, error });
  }
  return [...points.values()];
}

function confusionOf(samples: readonly Sample[]): { confusion?: Confusion } {
  const { options } = at(samples, 0);
  const same = samples.every((sample) => sample.options.join('\n') === options.join('\n') && !sample.value);
  if (!same || options.length > MOST_CONFUSED) return {};
  const counts = options.map(() => options.map(() => 0));
  for (const { logprobs, label } of samples) {
    const row = at(counts, label);
    const answered = logprobs.indexOf(Math.max(...logprobs));
    row[answered] = at(row, answered) + 1;
  }
  return { confusion: { options, counts } };
}

/** Holds whether the answer to one label was right; `key` is equal for the same input and right answer. */
export interface RowOutcome {
  key: string;
  name: string;
  right: boolean;
  confidence: number;
}

export interface Comparison {
  labels: number;
  accuracy: number;
  other_accuracy: number;
  /** Gain in accuracy over the other, with its interval of 95% (`pairedDifference`). */
  difference: Interval;
  /** Labels that only this or only the other evaluation answered right. */
  only_this: number;
  only_other: number;
  /** Two-sided p-value of McNemar's exact test. */
  p_value: number;
}

/**
 * Compares two evaluations of the same labels, row by row. Throws an error if they are not of the same labels in the
 * same order.
 */
export function compare(rows: readonly RowOutcome[], others: readonly RowOutcome[]): Comparison {
  const differs = rows.findIndex(({ key }, i) => others[i]?.key !== key);
  if (differs !== -1 || rows.length !== others.length) {
    throw new Error(
      `The evaluations are of different labels: ${rows.length} and ${others.length}, from number ${(differs === -1 ? Math.min(rows.length, others.length) : differs) + 1} on. Evaluate the same inputs and labels in the same order.`,
    );
  }
  const only = (right: boolean) =>
    rows.filter((row, i) => row.right === right && at(others, i).right === !right).length;
  const [only_this, only_other] = [only(true), only(false)];
  const accuracy = (list: readonly RowOutcome[]) => list.filter(({ right }) => right).length / (list.length || 1);
  return {
    labels: rows.length,
    accuracy: accuracy(rows),
    other_accuracy: accuracy(others),
    difference: pairedDifference(only_this, only_other, rows.length),
    only_this,
    only_other,
    p_value: mcnemar(only_this, only_other),
  };
}
