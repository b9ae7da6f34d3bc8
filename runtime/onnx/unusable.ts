import { AssayError } from '../../lib/errors.ts';

/** The error for a model file that is corrupt, hostile, or of a kind that is not supported. */
export function unusable(why: string, cause?: unknown): AssayError {
  return new AssayError('engine_failed', `The model file cannot be used: ${why}.`, { cause });
}
