import * as v from 'valibot';
import { at } from '../at.ts';
import { count, described, exactOptional, probability } from '../schema/values.ts';
import { normalised } from '../tasks/logprobs.ts';

/**
 * Kinds of answers that are calibrated separately: those of the three kinds of questions, `field` for extracted values,
 * and `absent` for the decision whether there is one.
 */
export const CALIBRATED_KINDS = ['predicate', 'choice', 'score', 'field', 'absent'] as const;
export type CalibratedKind = (typeof CALIBRATED_KINDS)[number];

const share = v.pipe(v.number(), v.minValue(0));

/** Measures of how far predicted probabilities are from observed frequencies. Lower is better; 0 is perfect. */
export const CalibrationErrors = v.object({
  ece: described(share, 'Expected calibration error with ten bins.'),
  brier: described(share, 'Brier score: squared errors summed over the options, averaged over the questions.'),
});
export type CalibrationErrors = v.InferOutput<typeof CalibrationErrors>;

export const TemperatureFit = v.object({
  temperature: v.pipe(v.number(), v.minValue(0.01), v.maxValue(100)),
  labels: described(count, 'Number of labelled questions that the temperature was fitted on.'),
  before: CalibrationErrors,
  after: described(
    CalibrationErrors,
    'Errors with the temperature, on questions that it was not fitted on (five-fold cross-validation).',
  ),
});
export type TemperatureFit = v.InferOutput<typeof TemperatureFit>;

/** Fitted temperatures, one for each kind that had enough labels (`FEWEST_LABELS`). */
export const CalibratedKinds = v.object({
  predicate: v.exactOptional(TemperatureFit),
  choice: v.exactOptional(TemperatureFit),
  score: v.exactOptional(TemperatureFit),
  field: v.exactOptional(TemperatureFit),
  absent: v.exactOptional(TemperatureFit),
});

export const GroupThreshold = v.object({
  threshold: described(
    v.nullable(probability),
    'Least probability of the likeliest option with which an answer may be automated; null: none.',
  ),
  labels: described(count, 'Number of labels on which the thresholds were tested.'),
  accepted: described(count, 'Number of these with at least the threshold.'),
  errors: described(count, 'Number of the accepted answers that were wrong.'),
  error_upper: described(v.nullable(probability), 'Upper bound of the error of accepted answers.'),
  coverage: described(probability, 'Share of the labels that were accepted.'),
  reason: exactOptional(v.string(), 'Why there is no threshold.'),
});
export type GroupThreshold = v.InferOutput<typeof GroupThreshold>;

export const CertifiedThresholds = v.object({
  target_error: described(probability, 'Largest error of the accepted answers.'),
  groups: described(
    v.record(v.string(), GroupThreshold),
    'By kind of question, such as choice, or by question, such as question:urgent.',
  ),
});
export type CertifiedThresholds = v.InferOutput<typeof CertifiedThresholds>;

/** Thresholds for `max_error`, with what they are valid for. */
export const Thresholds = v.object({
  method: v.literal('ltt-fixed-sequence'),
  confidence: described(probability, 'Probability, over the labels, that a threshold keeps its target error.'),
  fingerprint: described(
    v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
    "The model's policy_fingerprint that the thresholds are valid for.",
  ),
  orders: described(v.pipe(count, v.minValue(1)), 'Number of orders of the options that they are valid for.'),
  targets: v.pipe(v.array(CertifiedThresholds), v.maxLength(8)),
});
export type Thresholds = v.InferOutput<typeof Thresholds>;

/** Temperatures for the probabilities of one model, as `assay calibrate` stores them. */
export const Calibration = v.object({
  version: v.literal(1),
  /** SHA-256 hash over the model's files, in hex. The calibration is valid only for the model with these files. */
  fingerprint: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  model: v.string(),
  /** Date on which the temperatures were fitted (YYYY-MM-DD, UTC). */
  fitted: v.string(),
  kinds: CalibratedKinds,
  thresholds: v.exactOptional(Thresholds),
});
export type Calibration = v.InferOutput<typeof Calibration>;

/**
 * Returns the temperature of a kind of answer. A kind of question without a fitted temperature uses that of `choice`,
 * and `absent` that of `field`. If that is missing too, the temperature is 1, which changes nothing.
 */
export function temperatureOf({ kinds }: Calibration, kind: CalibratedKind): number {
  const other = kind === 'field' || kind === 'absent' ? 'field' : 'choice';
  const own = kinds[kind] ?? kinds[other];
  return own?.temperature ?? 1;
}

/**
 * Scales log-probabilities by a temperature: divides them by it and normalises the result (Guo et al. 2017,
 * "temperature scaling"). At temperature 1 they are returned unchanged, as a copy.
 */
export function atTemperature(logprobs: readonly number[], temperature: number): number[] {
  return temperature === 1 ? [...logprobs] : normalised(logprobs.map((logprob) => logprob / temperature));
}

/**
 * Scales the probability that an extracted value is right by a temperature, as a choice between two options: right and
 * wrong.
 */
export function valueAtTemperature(probability: number, temperature: number): number {
  return Math.exp(at(atTemperature(rightOrWrong(probability), temperature), 0));
}

/** Returns the log-probabilities `[right, wrong]` of a value that is right with this probability. */
export function rightOrWrong(probability: number): number[] {
  return normalised([Math.log(probability), Math.log1p(-probability)]);
}
