import { messageOf } from '../../lib/errors.ts';

/** Maximum number of characters of onnxruntime's message to show. */
const MAX_CHARACTERS = 300;

/**
 * Returns onnxruntime's reason why a library, a device or a graph did not load, for a sentence: the end of the first
 * line, with the names of files instead of their paths, and without the final period.
 */
export function loadFailureReason(cause: unknown): string {
  const [line = ''] = messageOf(cause).split('\n');
  return line
    .replace(/^.* (?:with error:|was false\.) /, '')
    .replace(/(?<=^|[\s('"])(?:[A-Za-z]:)?[\\/](?:[^\s'":]*[\\/])*/g, '')
    .slice(0, MAX_CHARACTERS)
    .replace(/[.\s]+$/, '');
}
