import { AssayError } from '../../lib/errors.ts';

/** Returns the error for a compiled model's folder in which a file is missing or damaged. */
export function incomplete(cause: unknown): AssayError {
  return new AssayError(
    'engine_failed',
    'The compiled model is incomplete. Delete its compiled files (assay rm --compiled-only <model>) and load it again.',
    { cause },
  );
}
