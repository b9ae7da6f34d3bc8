import { AssayError } from '../../lib/errors.ts';

/** Next step for a file that is damaged. */
export const DOWNLOAD_AGAIN = 'Download the model again.';

/**
 * Returns the error for a model file that is damaged, malicious or not supported.
 *
 * @param why the reason, which completes the sentence "The model file cannot be used: …"
 * @param next sentence that says what to do
 */
export function unusable(
  why: string,
  next = 'Use another file of this model, or another model.',
  cause?: unknown,
): AssayError {
  const error = new AssayError('engine_failed', `The model file cannot be used: ${why}. ${next}`, { cause });
  reasons.set(error, why);
  return error;
}

const reasons = new WeakMap<object, string>();

/** Returns the reason that such an error was created with in this process; undefined for another error. */
export function reasonInUnusable(error: unknown): string | undefined {
  return error instanceof AssayError ? reasons.get(error) : undefined;
}
