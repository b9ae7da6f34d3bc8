import { AssayError } from './errors.ts';
import { WEIGHT_FORMS, type WeightForm } from './schema/weight-form.ts';

/**
 * Marks an error's cause: with weights in this number format the model computes wrong results here; another format may
 * work.
 */
interface Refusal {
  refusedForm: WeightForm;
}

/** Returns an error cause that `refusedForm` recognises, also after the error has crossed a process boundary. */
export function refusal(form: WeightForm): Refusal {
  return { refusedForm: form };
}

/** Returns the number format of the weights that an error refuses; undefined for any other error. */
export function refusedForm(error: unknown): WeightForm | undefined {
  // A cause may be any value; its only member is compared below.
  const cause = error instanceof AssayError ? (error.cause as Partial<Refusal> | null | undefined) : undefined;
  return WEIGHT_FORMS.find((form) => form === cause?.refusedForm);
}
