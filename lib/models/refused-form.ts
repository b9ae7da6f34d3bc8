import { AssayError } from '../errors.ts';
import { WEIGHT_FORMS, type WeightForm } from '../schema/form-choice.ts';

/**
 * Represents the cause of an error: with weights in the format `refusedForm`, the model computes wrong results on this
 * machine. Another format may work.
 */
interface Refusal {
  refusedForm: WeightForm;
}

/**
 * Returns the `cause` of an `AssayError` in which `refusedForm` finds this number format, even after the error was sent
 * to another process.
 */
export function refusal(form: WeightForm): Refusal {
  return { refusedForm: form };
}

/** Returns the number format that the cause of an error refuses (`refusal`); undefined for any other error. */
export function refusedForm(error: unknown): WeightForm | undefined {
  // A cause may be any value; the cast is safe because the member that is read is only compared.
  const cause = error instanceof AssayError ? (error.cause as Partial<Refusal> | null | undefined) : undefined;
  return WEIGHT_FORMS.find((form) => form === cause?.refusedForm);
}
