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
  return new AssayError('engine_failed', `${BEGIN}${why}. ${next}`, { cause });
}

const BEGIN = 'The model file cannot be used: ';

/** Returns the reason in such an error; null for another one. */
export function whyUnusable(error: unknown): string | null {
  if (!(error instanceof AssayError && error.message.startsWith(BEGIN))) return null;
  return error.message.slice(BEGIN.length).replace(/\. .*$/su, '');
}
