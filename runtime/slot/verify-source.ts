import { AssayError } from '../../lib/errors.ts';
import { hashFile } from '../store/digest.ts';
import type { SourceFile } from '../store/fingerprint.ts';
import type { LocalModel } from '../store/hub-cache.ts';
import type { EnsureOptions } from './compile-context.ts';

/**
 * Checks the hashes of a model's source files, so that a damaged file is reported instead of causing wrong answers.
 * Throws `engine_failed` if one does not match, the file system's error if a file cannot be read, and the reason of
 * `signal` if it aborts.
 */
export async function verifySource(
  model: LocalModel,
  files: readonly SourceFile[],
  { signal, onProgress }: Pick<EnsureOptions, 'signal' | 'onProgress'>,
): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let checked = 0;
  for (const file of files) {
    const onBytes = (bytes: number): void =>
      onProgress({ stage: 'verifying', bytes: checked + bytes, total, file: file.path });
    if ((await hashFile(file.real, file.size, file.hash, { signal, onBytes })) !== file.hash) {
      throw new AssayError(
        'engine_failed',
        `${file.path} of ${model.id} is damaged on this machine's disk. Fetch it again: assay pull ${model.id}`,
      );
    }
    checked += file.size;
  }
}
