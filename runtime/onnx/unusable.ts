import { AssayError } from '../../lib/errors.ts';

/** Returns the error for a model file that is damaged, malicious or not supported. */
export function unusable(why: string, cause?: unknown): AssayError {
  return new AssayError('engine_failed', `The model file cannot be used: ${why}.`, { cause });
}
