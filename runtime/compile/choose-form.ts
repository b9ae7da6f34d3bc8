import { AssayError } from '../../lib/errors.ts';
import type { WeightForm } from '../../lib/schema/form-choice.ts';

/** Holds the measurements of one weight form of a model on this machine. */
export interface MeasuredForm {
  form: WeightForm;
  /** Error of its logits against those in 32-bit floats (`logitError`); null if it was not measured. */
  error: number | null;
  /**
   * Difference to 32-bit floats that 95% of a decision model's probabilities do not exceed, on its author's prompt;
   * absent for a model that generates text, and if it was not measured.
   */
  shift?: number;
  /** Milliseconds of processor time that a small request takes. */
  ms: number;
}

/**
 * Largest error of a weight form that `auto` accepts (`logitError`). Measured: 8 bits 0.04 to 0.12 (the starter model
 * 0.11), published 4-bit weights 0.04 to 0.09, small models quantized here to 4 bits 0.39 to 0.59; clamped 8-bit sums
 * (AVX2, models with random weights) 0.31 to 0.52.
 */
export const ACCEPTED_ERROR = 0.2;

/** Largest `shift` of a decision model's weight form that `auto` accepts. */
export const ACCEPTED_SHIFT = 0.02;

/**
 * Error above which a weight form is refused even if it was requested, because its answers have little to do with the
 * model's. Measured: SmolLM2-135M quantized here to 4 bits 1.0 to 1.3, small random models 0.3 to 0.5.
 */
const REFUSED_ERROR = 0.75;

/** Error reported for a form that gives NaN or does not run on this CPU: larger than any measured one. */
export const UNUSABLE_ERROR = 1e6;

/** A form counts as equally fast if it takes at most this many times as long as the fastest. */
const SAME_SPEED = 1.1;
/** The same for decision models, whose probabilities are what they are used for. */
const SAME_SPEED_EXACT = 1.5;

/**
 * Returns the fastest accurate form (`isAccurate`); of those within `SAME_SPEED`, the most accurate. Returns undefined
 * if no form is accurate.
 */
export function chooseForm<Form extends MeasuredForm>(measured: readonly Form[]): Form | undefined {
  const accurate = measured.filter(isAccurate);
  const fastest = Math.min(...accurate.map(({ ms }) => ms));
  return accurate
    .filter(({ ms, shift }) => ms <= fastest * (shift === undefined ? SAME_SPEED : SAME_SPEED_EXACT))
    .toSorted((one, other) => (one.shift ?? one.error ?? 0) - (other.shift ?? other.error ?? 0))[0];
}

/**
 * Tells whether `auto` accepts a form: its error, or for a decision model the shift of its probabilities, is small
 * enough or was not measured. False for NaN.
 */
export function isAccurate({ error, shift }: Pick<MeasuredForm, 'error' | 'shift'>): boolean {
  if (shift !== undefined) return shift <= ACCEPTED_SHIFT;
  return error === null || error <= ACCEPTED_ERROR;
}

/** Throws `engine_failed` if a form's error is above `REFUSED_ERROR`, so that its answers would be useless. */
export function refuseUseless({ form, error }: Pick<MeasuredForm, 'form' | 'error'>): void {
  if (error === null || error <= REFUSED_ERROR) return;
  const limit =
    error === UNUSABLE_ERROR ? '' : `, more than the ${100 * REFUSED_ERROR}% beyond which answers are nonsense`;
  throw new AssayError(
    'engine_failed',
    `This model cannot be used as ${form}: ${errorText(error)}${limit}. Use --precision auto, which chooses an accurate form.`,
  );
}

/** Formats measurements for users, for example `int8 41.0 ms, logits off by 3.0%; int4 67.2 ms, logits off by 2.1%`. */
export function measuredText(measured: readonly MeasuredForm[]): string {
  return measured
    .map((one) => `${one.form} ${one.error === UNUSABLE_ERROR ? '' : `${one.ms.toFixed(1)} ms, `}${accuracyText(one)}`)
    .join('; ');
}

/**
 * Formats the error of a form's logits for users. `error` is a fraction; null: not measured; `UNUSABLE_ERROR`: the form
 * fails on this CPU.
 */
export function errorText(error: number | null): string {
  if (error === null) return 'accuracy not measured';
  return error === UNUSABLE_ERROR ? 'fails on this CPU' : `logits off by ${(100 * error).toFixed(1)}%`;
}

/** Formats the accuracy of a form for users: the shift of a decision model's probabilities, otherwise its error. */
export function accuracyText({ error, shift }: Pick<MeasuredForm, 'error' | 'shift'>): string {
  return shift === undefined ? errorText(error) : `95% of its probabilities within ${shift.toFixed(3)} of floats`;
}
