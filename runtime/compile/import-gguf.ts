import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs/promises';
import type { ModelId } from '../../lib/model-id.ts';
import { readGguf } from '../checkpoint/gguf/read-gguf.ts';
import { ggufTokenizer } from '../checkpoint/gguf/tokenizer.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { Refused } from '../graph/config-keys.ts';
import { ggufConfig, ggufWeights } from '../graph/gguf.ts';
import { unusable } from '../onnx/unusable.ts';
import { hashFile } from '../store/digest.ts';
import { publishSnapshot } from '../store/hub-cache.ts';
import { tryLock } from '../store/lock.ts';
import { GGUF_FILE } from '../store/model-files.ts';
import type { StorePaths } from '../store/paths.ts';

/** Digits of a hash that name a snapshot, as those of a commit do. */
const COMMIT_DIGITS = 40;

/**
 * Puts a GGUF file into the hub cache as the model `model`, with the configuration and the tokenizer that its metadata
 * describe, so that it is used as a downloaded model. The file is shared with the cache if both are on one disk,
 * otherwise copied. Returns its number of bytes.
 *
 * @throws AssayError `engine_failed` for a file that is damaged, or whose model cannot run here; `internal_error` or
 *   `disk_full` if the cache cannot be written to
 * @throws the file system's error if the file cannot be read
 */
export async function importGguf(
  paths: StorePaths,
  model: ModelId,
  file: string,
  onBytes: (bytes: number, total: number) => void = () => {},
): Promise<number> {
  const made = filesFromGguf(file);
  const { size } = await fs.stat(file);
  const hash = await hashFile(file, size, '0'.repeat(64), { onBytes: (bytes) => onBytes(bytes, size) });
  await paths.makeDirectory(paths.locks(model));
  const held = tryLock(paths.modelLock(model));
  if (!held) throw unusable('another process fetches or removes this model', 'Run the command again when it is done.');
  try {
    await paths.makeDirectory(paths.blobs(model));
    await place(paths.blob(model, hash), (blob) => fs.link(file, blob).catch(() => fs.copyFile(file, blob)));
    const texts = Object.entries(made).map(async ([path, text]) => {
      const own = createHash('sha256').update(text).digest('hex');
      await place(paths.blob(model, own), (blob) => fs.writeFile(blob, text));
      return { path, size: Buffer.byteLength(text), hash: own };
    });
    const files = [...(await Promise.all(texts)), { path: GGUF_FILE, size, hash }];
    const commit = hash.slice(0, COMMIT_DIGITS);
    await publishSnapshot(paths, model, { commit, revision: 'main', graph: GGUF_FILE, files });
    return size;
  } finally {
    held.release();
  }
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

/**
 * Makes the configuration and the tokenizer of a model from its GGUF file. Throws `engine_failed` for a file that is
 * damaged, or whose model cannot run here.
 */
function filesFromGguf(file: string): Record<'config.json' | 'tokenizer.json' | 'tokenizer_config.json', string> {
  try {
    const gguf = readGguf(file);
    const { tokenizer, config } = ggufTokenizer(gguf);
    // Types that are not read are refused here, and not at the compile.
    for (const stored of ggufWeights(gguf).values()) floatTensor(stored);
    return {
      'config.json': JSON.stringify(ggufConfig(gguf), null, 1),
      'tokenizer.json': JSON.stringify(tokenizer),
      'tokenizer_config.json': JSON.stringify(config, null, 1),
    };
  } catch (error) {
    throw error instanceof Refused ? unusable(error.message) : error;
  }
}
