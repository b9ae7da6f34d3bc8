import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { excessOf } from '../../lib/json/scan.ts';

/** Bounds on the size of a file of an untrusted model. */
export interface FileBounds {
  bytes: number;
  /**
   * Maximum number of object members and array items in its JSON; absent: `MAX_PARTS`, the bound for a request's JSON.
   */
  parts?: number;
}

/** Bounds of a model's configuration files. Published files have a few kilobytes. */
export const CONFIG_BOUNDS: FileBounds = { bytes: 4 * 1024 * 1024 };

/**
 * Reads an untrusted file of a model as text. Returns null if it does not exist.
 *
 * @param name name of the file in error messages; default: the last part of its path
 * @throws AssayError `engine_failed` if the file has more than `maxBytes` bytes; the file system's error if it cannot
 *   be read
 */
export async function readBounded(
  file: string,
  maxBytes: number,
  name: string = basename(file),
): Promise<string | null> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (!handle) return null;
  try {
    const { size } = await handle.stat();
    if (size > maxBytes)
      throw new AssayError('engine_failed', `The model's ${name} is too large to read. Use another model.`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/**
 * Parses an untrusted JSON file of a model. Returns undefined if it does not exist. Checks size, nesting and number of
 * parts before it parses, because a parsed value takes up to a hundred times the memory of its text.
 *
 * @param name name of the file in error messages; default: the last part of its path
 * @throws AssayError `engine_failed` for a file that exceeds the bounds or is not JSON; the file system's error if it
 *   cannot be read
 */
export async function readBoundedJson(
  file: string,
  { bytes, parts }: FileBounds,
  name: string = basename(file),
): Promise<unknown> {
  const text = await readBounded(file, bytes, name);
  if (text === null) return undefined;
  const excess = excessOf(text, parts);
  if (excess) {
    const what = excess === 'depth' ? 'nests too deep' : 'has too many members';
    throw new AssayError('engine_failed', `The model's ${name} ${what} to be read. Use another model.`);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new AssayError('engine_failed', `The model's ${name} is damaged. Download the model again.`, {
      cause,
    });
  }
}
