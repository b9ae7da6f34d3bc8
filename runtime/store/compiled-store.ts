import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { Precision, PrecisionChoice } from '../../lib/schema/precision.ts';
import { hashFile } from './digest.ts';
import { Fingerprint, fingerprintKey } from './fingerprint.ts';
import { join, type StorePaths } from './paths.ts';
import { idOfRepositoryFolder, isSafeRepositoryPath } from './safe-names.ts';

const RECORD_FILE = 'fingerprint.json';

const Record = v.object({
  fingerprint: Fingerprint,
  /** Device that the model was compiled for. May differ from the one in the fingerprint, which was requested. */
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  /** Longest prompt, in tokens, of the compiled model. May differ from the requested one in the fingerprint. */
  maxPromptLen: v.number(),
  /** Precision. Absent in records of earlier versions, which are only read so that their models can be removed. */
  precision: v.exactOptional(Precision),
  /** Reason for the precision, and its measurements; absent in the same records as `precision`. */
  choice: v.optional(v.fallback(v.optional(PrecisionChoice), undefined)),
  /** Most threads that compute tasks with the same bits alone and in company; absent: any number. */
  mostThreads: v.exactOptional(v.number()),
  /** Measured error and speed of the device; absent if no plugin drives it. */
  figures: v.exactOptional(DeviceFigures),
  /** All files of the directory except this record, with their hashes. */
  files: v.array(
    v.strictObject({
      name: v.pipe(v.string(), v.check(isSafeRepositoryPath)),
      size: v.number(),
      sha256: v.pipe(v.string(), v.length(64)),
    }),
  ),
});
export type CompiledRecord = v.InferOutput<typeof Record>;

/** Describes a complete compiled model in the store. */
export interface CompiledModel {
  directory: string;
  key: string;
  record: CompiledRecord;
}

/**
 * Finds the compiled model with this fingerprint and verifies the size and hash of every file. Returns null if it is
 * absent, incomplete or damaged.
 */
export async function findCompiled(
  paths: StorePaths,
  model: ModelId,
  fingerprint: Fingerprint,
): Promise<CompiledModel | null> {
  const key = fingerprintKey(fingerprint);
  const compiled = await readCompiled(paths, model, key);
  if (!compiled) return null;
  const intact = compiled.record.files.map(async ({ name, size, sha256 }) => {
    const file = await paths.real(paths.file(compiled.directory, name));
    const stat = file ? await fs.stat(file).catch(() => null) : null;
    if (file === null || stat?.size !== size) return false;
    // A file that cannot be read counts as damaged, so that the model is compiled again.
    return (await hashFile(file, size, sha256).catch(() => null)) === sha256;
  });
  return (await Promise.all(intact)).every(Boolean) ? compiled : null;
}

/** Lists the complete compiled models of one source model, without verifying their files. */
export async function listCompiled(paths: StorePaths, model: ModelId): Promise<CompiledModel[]> {
  const names = await fs.readdir(paths.compiledModel(model)).catch(() => []);
  const keys = names.filter((name) => !name.startsWith('.'));
  const found = await Promise.all(keys.map((key) => readCompiled(paths, model, key).catch(() => null)));
  return found.filter((compiled) => compiled !== null);
}

/** Lists the complete compiled models of all source models, without verifying their files. */
export async function listAllCompiled(paths: StorePaths): Promise<(CompiledModel & { model: ModelId })[]> {
  const folders = await fs.readdir(paths.compiledRoot()).catch(() => []);
  const models = folders.map(idOfRepositoryFolder).filter((model) => model !== null);
  const found = models
    .sort()
    .map(async (model) => (await listCompiled(paths, model)).map((compiled) => ({ ...compiled, model })));
  return (await Promise.all(found)).flat();
}

/** Tells whether a compiled model was removed: by a delete, or as stale by a compile of another version. */
export function isGone({ directory }: CompiledModel): Promise<boolean> {
  return fs.access(directory).then(
    () => false,
    () => true,
  );
}

async function readCompiled(paths: StorePaths, model: ModelId, key: string): Promise<CompiledModel | null> {
  // Not the real path, which is outside `ASSAY_HOME` if `ASSAY_HOME` itself is a link.
  const directory = paths.compiled(model, key);
  if ((await paths.real(directory)) === null) return null;
  const text = await fs.readFile(join(directory, RECORD_FILE), 'utf8').catch(() => '');
  const record = v.safeParse(v.pipe(v.string(), v.parseJson(), Record), text);
  return record.success ? { directory, key, record: record.output } : null;
}

/**
 * Publishes a finished compile in the store, in place of an earlier one with the same fingerprint, and returns the
 * stored model. The record, with the hash of every file, is written last, and a single rename makes the whole directory
 * visible.
 *
 * @param staging directory inside the model's compiled directory, which contains all files of the compile and is moved
 */
export async function publishCompiled(
  paths: StorePaths,
  model: ModelId,
  staging: string,
  made: Omit<CompiledRecord, 'files'>,
): Promise<CompiledModel> {
  const names = (await fs.readdir(staging)).sort();
  const files = await Promise.all(
    names.map(async (name) => {
      const size = await flushed(join(staging, name));
      return { name, size, sha256: await hashFile(join(staging, name), size, '0'.repeat(64)) };
    }),
  );
  const record = v.parse(Record, { ...made, files });
  await fs.writeFile(join(staging, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, { flush: true });
  const key = fingerprintKey(made.fingerprint);
  const directory = paths.compiled(model, key);
  await paths.remove(directory);
  await fs.rename(staging, directory);
  return { directory, key, record };
}

/** Flushes a file to the disk, because the process that wrote it may not have done so. Returns its size in bytes. */
async function flushed(file: string): Promise<number> {
  const handle = await fs.open(file, 'r+');
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}

/**
 * Throws `engine_failed` if `folder`, which a compile has written, contains anything but plain files. The compile
 * process handles untrusted files, and a link that it left could make the server write or publish a file outside the
 * folder.
 */
export async function checkPlainFiles(folder: string): Promise<void> {
  for (const name of await fs.readdir(folder)) {
    const found = await fs.lstat(join(folder, name));
    if (found.isFile() && found.nlink === 1) continue;
    throw new AssayError(
      'engine_failed',
      'The compile wrote links, folders or special files, so its result was discarded. Use a model that you trust.',
    );
  }
}

/**
 * Saves disk space: replaces files of a model's other compiled models with hard links to equal files of the new one
 * (`made`). Compiled models that differ only in their prompt length have the same weights. All links point to the new
 * files, because their hashes have just been computed. A process that has an old file open can still read it. Where
 * hard links are impossible, or open files cannot be replaced, the copies stay.
 *
 * @param staging directory inside the model's compiled directory, in which each link is created before it is moved into
 *   place
 */
export async function shareFiles(
  paths: StorePaths,
  model: ModelId,
  staging: string,
  made: CompiledModel,
): Promise<void> {
  const fresh = new Set(made.record.files.map(({ name, size, sha256 }) => `${name} ${size} ${sha256}`));
  const link = join(staging, 'link');
  for (const { directory, key, record } of await listCompiled(paths, model)) {
    if (key === made.key) continue;
    for (const { name, size, sha256 } of record.files) {
      if (!fresh.has(`${name} ${size} ${sha256}`)) continue;
      await fs
        .link(paths.file(made.directory, name), link)
        .then(() => fs.rename(link, paths.file(directory, name)))
        .catch(() => fs.rm(link, { force: true }));
    }
  }
}

/**
 * Maximum number of compiled models to keep for other prompt lengths. They share files, but each has a record that
 * every listing of the models reads.
 */
const OTHER_LENGTHS = 8;

/**
 * Moves compiled models that cannot be used any more to `staging`: those of another version of the runtime or the
 * compiler, of another plugin for the same device, or of other source files in the same number format. Of those that
 * differ from the current one only in their prompt length, the newest `OTHER_LENGTHS` stay.
 *
 * @param staging directory inside the model's compiled directory, which the caller then removes
 * @param current fingerprint of the compiled model that was just published
 * @param inUse tells whether a compiled model's directory must stay
 */
export async function removeStale(
  paths: StorePaths,
  model: ModelId,
  staging: string,
  current: Fingerprint,
  inUse: (directory: string) => boolean,
): Promise<void> {
  // A single rename moves the whole directory, or nothing on systems that cannot move open files.
  const take = async ({ directory, key }: CompiledModel): Promise<void> => {
    if (!inUse(directory)) await fs.rename(directory, join(staging, key)).catch(() => undefined);
  };
  const lengths: { compiled: CompiledModel; made: number }[] = [];
  for (const compiled of await listCompiled(paths, model)) {
    const { source, runtime, compiler, dtype, device, plugin, maxPromptLen } = compiled.record.fingerprint;
    const otherFormat = dtype !== current.dtype;
    const sameDriver = device !== current.device || plugin === current.plugin;
    const sameTools = runtime === current.runtime && compiler === current.compiler && sameDriver;
    const same = sameTools && (otherFormat || source === current.source);
    if (!same) await take(compiled);
    else if (maxPromptLen !== current.maxPromptLen && compiled.key === fingerprintKey({ ...current, maxPromptLen })) {
      lengths.push({ compiled, made: (await fs.stat(join(compiled.directory, RECORD_FILE))).mtimeMs });
    }
  }
  lengths.sort((a, b) => b.made - a.made);
  for (const { compiled } of lengths.slice(OTHER_LENGTHS)) await take(compiled);
}
