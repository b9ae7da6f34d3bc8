import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { FileHash } from './digest.ts';
import { hashFile } from './digest.ts';
import { publishSnapshot } from './hub-cache.ts';
import { tryLock } from './lock.ts';
import { DERIVED_SUFFIX, type FileEntry } from './model-files.ts';
import type { StorePaths } from './paths.ts';

/** Contents of the text files that are made from the metadata of a GGUF file, by name. */
export type GgufTexts = Readonly<Record<string, string>>;

/** Name of an imported file in its snapshot. */
const FILE = 'model.gguf';
/** Digits of a hash that name a snapshot, as those of a commit do. */
const COMMIT_DIGITS = 40;

/**
 * Puts a GGUF file into the hub cache as the model `model`, with the configuration and the tokenizer that its metadata
 * describe, so that it is used as a downloaded model. The file is shared with the cache if both are on one disk,
 * otherwise copied. Returns its number of bytes.
 *
 * @param texts what was made from the metadata of the file
 * @throws AssayError `operation_in_progress` if another process changes the model; `internal_error` or `disk_full` if
 *   the cache cannot be written to
 * @throws the file system's error if the file cannot be read
 */
export async function importGguf(paths: StorePaths, model: ModelId, file: string, texts: GgufTexts): Promise<number> {
  const { size } = await fs.stat(file);
  const hash = await hashFile(file, size, '0'.repeat(64));
  await paths.makeDirectory(paths.locks(model));
  const held = tryLock(paths.modelLock(model));
  if (!held) {
    const busy = 'Another process fetches or removes this model. Run the command again when it is done.';
    throw new AssayError('operation_in_progress', busy, { param: 'model' });
  }
  try {
    await paths.makeDirectory(paths.blobs(model));
    await place(paths.blob(model, hash), (blob) => fs.link(file, blob).catch(() => fs.copyFile(file, blob)));
    const files = [...(await placeTexts(paths, model, FILE, texts)), { path: FILE, size, hash }];
    const commit = hash.slice(0, COMMIT_DIGITS);
    await publishSnapshot(paths, model, { commit, revision: 'main', graph: FILE, files });
    return size;
  } finally {
    held.release();
  }
}

/** Puts the text files that belong to the GGUF file `file` of a snapshot into the cache, and returns their entries. */
export function placeTexts(
  paths: StorePaths,
  model: ModelId,
  file: string,
  texts: GgufTexts,
): Promise<(FileEntry & { hash: FileHash })[]> {
  return Promise.all(
    Object.entries(texts).map(async ([name, text]) => {
      const hash = createHash('sha256').update(text).digest('hex');
      await place(paths.blob(model, hash), (blob) => fs.writeFile(blob, text));
      return { path: `${file}${DERIVED_SUFFIX}/${name}`, size: Buffer.byteLength(text), hash };
    }),
  );
}

/** Writes a blob beside its name and then renames it, because another process must not find half of it. */
async function place(blob: string, write: (file: string) => Promise<void>): Promise<void> {
  const part = `${blob}.${randomUUID()}`;
  try {
    await write(part);
    await fs.rename(part, blob);
  } finally {
    await fs.rm(part, { force: true });
  }
}
