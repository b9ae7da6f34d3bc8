import { AssayError } from '../errors.ts';
import { PRECISIONS, type Precision } from '../schema/precision.ts';

/**
 * Represents the cause of an error: with weights in this precision, the model computes wrong results on this machine.
 * Another one may work.
 */
interface Refusal {
  refusedPrecision: Precision;
}

/**
 * Returns the `cause` of an `AssayError` in which `refusedPrecision` finds this precision, even after the error was
 * sent to another process.
 */
export function refusal(refusedPrecision: Precision): Refusal {
  return { refusedPrecision };
}

/** Returns the precision that the cause of an error refuses (`refusal`); undefined for any other error. */
export function refusedPrecision(error: unknown): Precision | undefined {
  // A cause may be any value; the cast is safe because the member that is read is only compared.
  const cause = error instanceof AssayError ? (error.cause as Partial<Refusal> | null | undefined) : undefined;
  return PRECISIONS.find((one) => one === cause?.refusedPrecision);
}
