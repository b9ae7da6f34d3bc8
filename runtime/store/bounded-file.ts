import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { AssayError } from '../../lib/errors.ts';

/**
 * The text of a model's file, which strangers made; null where there is none.
 *
 * @throws AssayError `engine_failed` for one of more than `maxBytes`; nothing of it is read
 */
export async function readBounded(file: string, maxBytes: number): Promise<string | null> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (!handle) return null;
  try {
    const { size } = await handle.stat();
    if (size > maxBytes) throw new AssayError('engine_failed', `The model's ${basename(file)} is too large to read.`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
