import { AssayError } from '../../../lib/errors.ts';
import { refusal } from '../../../lib/refused-form.ts';
import type { WeightForm } from '../../../lib/schema/weight-form.ts';
import { errorText } from '../../compile/choose-form.ts';

/**
 * Returns the `engine_failed` error for a weight form whose logits are wrong on this machine. Its `cause` names the
 * form, for `refusedForm`.
 *
 * @param error measured `logitError`
 * @param limit largest accepted `logitError`
 */
export function wrongNumbers(form: WeightForm, error: number, limit: number): AssayError {
  return new AssayError(
    'engine_failed',
    `This machine computes wrong numbers in ${form}: ${errorText(error)}, and the limit is ${(100 * limit).toFixed(0)}%. Start with --precision auto, which chooses an accurate form.`,
    { cause: refusal(form) },
  );
}
