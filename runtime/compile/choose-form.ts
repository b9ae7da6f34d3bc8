import type { WeightForm } from '../../lib/schema/weight-form.ts';

/** Holds the measurements of one form of the weights on this machine. */
export interface MeasuredForm {
  form: WeightForm;
  /** Distance of its logits from those in 32-bit floats (`logitError`); null when it was not measured. */
  error: number | null;
  /** Processor milliseconds of a small request. */
  ms: number;
}

/**
 * Largest error of a form that `auto` accepts, as a share of the logits' spread. Measured: 8 bits 0.04 to 0.12 (the
 * starter 0.11), published 4-bit weights 0.04 to 0.09, 4 bits made here of small models 0.39 to 0.59; clamped 8-bit
 * sums (AVX2, models with random weights) 0.31 to 0.52.
 */
export const ACCEPTED_ERROR = 0.2;

/** Factor up to which a slower form counts as equally fast. */
const SAME_SPEED = 1.1;

/**
 * Returns the fastest of the accurate forms, and of several equally fast ones the most accurate; undefined when no form
 * is accurate.
 */
export function chooseForm<Form extends MeasuredForm>(measured: readonly Form[]): Form | undefined {
  const accurate = measured.filter(isAccurate);
  const fastest = Math.min(...accurate.map(({ ms }) => ms));
  return accurate
    .filter(({ ms }) => ms <= fastest * SAME_SPEED)
    .toSorted((one, other) => (one.error ?? 0) - (other.error ?? 0))[0];
}

/** Tells whether a form is accurate. NaN is not. */
export function isAccurate({ error }: Pick<MeasuredForm, 'error'>): boolean {
  return error === null || error <= ACCEPTED_ERROR;
}

/** Formats measurements for people: `int8 41.0 ms, off by 3.0%; int4 67.2 ms, off by 2.1%`. */
export function measuredText(measured: readonly MeasuredForm[]): string {
  return measured.map(({ form, error, ms }) => `${form} ${ms.toFixed(1)} ms, ${errorText(error)}`).join('; ');
}

export function errorText(error: number | null): string {
  return error === null ? 'accuracy not measured' : `logits off by ${(100 * error).toFixed(1)}%`;
}
