import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { excessOf } from '../../lib/json/scan.ts';

/** Holds the bounds of a model's file. */
export interface FileBounds {
  bytes: number;
  /** Members and items of its JSON; absent: `MAX_PARTS`, as for a request. */
  parts?: number;
}

/** Bounds of configuration files; published ones have some kilobytes. */
export const CONFIG_BOUNDS: FileBounds = { bytes: 4 * 1024 * 1024 };

/**
 * Reads an untrusted file of a model, which errors call `name`; null when there is none.
 *
 * @throws AssayError `engine_failed` for more than `maxBytes`; nothing of it is read
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
    if (size > maxBytes) throw new AssayError('engine_failed', `The model's ${name} is too large to read.`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/**
 * Reads the value in a model's JSON file; undefined when there is no file. Checks size and nesting before it parses: a
 * value takes up to a hundred times the memory of its text.
 *
 * @throws AssayError `engine_failed` for a file beyond the bounds or one that is not JSON
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
    throw new AssayError('engine_failed', `The model's ${name} ${what} to be read.`);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new AssayError('engine_failed', `The model's ${name} is damaged. Download the model again.`, {
      cause,
    });
  }
}
