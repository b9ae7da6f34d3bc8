import { AssayError } from './errors.ts';
import { WEIGHT_FORMS, type WeightForm } from './schema/weight-form.ts';

/**
 * Represents the cause of an error: with weights in this number format, the model computes wrong results on this
 * machine. Another format may work.
 */
interface Refusal {
  refusedForm: WeightForm;
}

/** Returns an error cause that `refusedForm` recognises, even after the error was sent to another process. */
export function refusal(form: WeightForm): Refusal {
  return { refusedForm: form };
}

/** Returns the number format of the weights that an error refuses; undefined for any other error. */
export function refusedForm(error: unknown): WeightForm | undefined {
  // A cause may be any value; the cast is safe because the member that is read is only compared.
  const cause = error instanceof AssayError ? (error.cause as Partial<Refusal> | null | undefined) : undefined;
  return WEIGHT_FORMS.find((form) => form === cause?.refusedForm);
}
