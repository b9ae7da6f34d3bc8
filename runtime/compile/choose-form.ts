import type { WeightForm } from '../../lib/schema/weight-form.ts';

/** What a form of the weights measured on this machine. */
export interface MeasuredForm {
  form: WeightForm;
  /** How far its logits are from those in 32-bit floats (`logitError`); null where that was not measured. */
  error: number | null;
  /** Processor milliseconds of a small request. */
  ms: number;
}

/**
 * The largest error that a form may have to be chosen without being asked for, as a share of the logits' spread.
 * Measured: 8 bits 0.04 to 0.12 (the starter 0.11), published 4-bit weights 0.04 to 0.09, our own 4 bits of small
 * models 0.39 to 0.59; 8-bit sums that are clamped (AVX2, models with random weights) 0.31 to 0.52.
 */
export const ACCEPTED_ERROR = 0.2;

/** Forms that are this much slower than the fastest still count as as fast. */
const SAME_SPEED = 1.1;

/**
 * Returns the fastest of the forms that are accurate enough, and the most accurate of several as fast; undefined where
 * none is.
 */
export function chooseForm<Form extends MeasuredForm>(measured: readonly Form[]): Form | undefined {
  const accurate = measured.filter(isAccurate);
  const fastest = Math.min(...accurate.map(({ ms }) => ms));
  return accurate
    .filter(({ ms }) => ms <= fastest * SAME_SPEED)
    .toSorted((one, other) => (one.error ?? 0) - (other.error ?? 0))[0];
}

/** Written so that NaN is not accurate. */
export function isAccurate({ error }: Pick<MeasuredForm, 'error'>): boolean {
  return error === null || error <= ACCEPTED_ERROR;
}

/** Returns what was measured as a text for people: `int8 41.0 ms, off by 3.0%; int4 67.2 ms, off by 2.1%`. */
export function measuredText(measured: readonly MeasuredForm[]): string {
  return measured.map(({ form, error, ms }) => `${form} ${ms.toFixed(1)} ms, ${errorText(error)}`).join('; ');
}

export function errorText(error: number | null): string {
  return error === null ? 'accuracy not measured' : `logits off by ${(100 * error).toFixed(1)}%`;
}
