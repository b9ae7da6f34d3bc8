import * as v from 'valibot';
import { at } from '../at.ts';
import { normalised } from '../decision/logprobs.ts';

/** Lists what has a temperature of its own: the kinds of questions, and the values of extractions. */
export const CALIBRATED_KINDS = ['predicate', 'choice', 'score', 'field'] as const;
export type CalibratedKind = (typeof CALIBRATED_KINDS)[number];

const share = v.pipe(v.number(), v.minValue(0));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Says how far probabilities are from how often they come true. Lower is better, 0 is perfect. */
export const CalibrationErrors = v.object({
  ece: v.pipe(share, v.description('Expected calibration error, in ten bins.')),
  brier: v.pipe(share, v.description('Brier score: squared error over all options.')),
});
export type CalibrationErrors = v.InferOutput<typeof CalibrationErrors>;

export const TemperatureFit = v.object({
  temperature: v.pipe(v.number(), v.minValue(0.01), v.maxValue(100)),
  labels: v.pipe(count, v.description('Labelled questions it was fitted on.')),
  before: CalibrationErrors,
  after: v.pipe(CalibrationErrors, v.description('On labels that the temperature was not fitted on (five folds).')),
});
export type TemperatureFit = v.InferOutput<typeof TemperatureFit>;

/** A temperature for each kind that there were labels of. */
export const CalibratedKinds = v.object({
  predicate: v.exactOptional(TemperatureFit),
  choice: v.exactOptional(TemperatureFit),
  score: v.exactOptional(TemperatureFit),
  field: v.exactOptional(TemperatureFit),
});

/** Temperatures for the probabilities of one model, as `assay calibrate` stores them. */
export const Calibration = v.object({
  version: v.literal(1),
  /** sha256 over the model's files: a calibration is for these weights alone. */
  fingerprint: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  model: v.string(),
  /** Date on which it was fitted. */
  fitted: v.string(),
  kinds: CalibratedKinds,
});
export type Calibration = v.InferOutput<typeof Calibration>;

/** Returns the temperature of a kind; questions without labels use that of choices. */
export function temperatureOf({ kinds }: Calibration, kind: CalibratedKind): number {
  const own = kinds[kind] ?? (kind === 'field' ? undefined : kinds.choice);
  return own?.temperature ?? 1;
}

/**
 * Returns log-probabilities at a temperature: divided by it and normalised again (Guo et al. 2017, "temperature
 * scaling").
 */
export function atTemperature(logprobs: readonly number[], temperature: number): number[] {
  return temperature === 1 ? [...logprobs] : normalised(logprobs.map((logprob) => logprob / temperature));
}

/** Returns the probability of a value at a temperature: of the two options that it is right and that it is not. */
export function valueAtTemperature(probability: number, temperature: number): number {
  return Math.exp(at(atTemperature(rightOrWrong(probability), temperature), 0));
}

/** Returns a probability as the log-probabilities of right and wrong. */
export function rightOrWrong(probability: number): number[] {
  return normalised([Math.log(probability), Math.log1p(-probability)]);
}
