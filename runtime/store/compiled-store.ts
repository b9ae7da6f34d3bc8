import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { FormChoice } from '../../lib/schema/form-choice.ts';
import { WeightForm } from '../../lib/schema/weight-form.ts';
import { hashFile } from './digest.ts';
import { Fingerprint, fingerprintKey } from './fingerprint.ts';
import { idOfRepositoryFolder, isSafeRepositoryPath, join, type StorePaths } from './paths.ts';

const RECORD_FILE = 'fingerprint.json';

const Record = v.strictObject({
  fingerprint: Fingerprint,
  /** The device and the prompt length that the compile really gave. */
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  maxPromptLen: v.number(),
  /**
   * The form of the weights, and why it was chosen; absent in records of earlier versions, which are found to be
   * removed.
   */
  form: v.exactOptional(WeightForm),
  choice: v.exactOptional(FormChoice),
  /** What the device was measured to do, where a plugin drives it. */
  figures: v.exactOptional(DeviceFigures),
  /** Every other file of the directory. */
  files: v.array(
    v.strictObject({
      name: v.pipe(v.string(), v.check(isSafeRepositoryPath)),
      size: v.number(),
      sha256: v.pipe(v.string(), v.length(64)),
    }),
  ),
});
export type CompiledRecord = v.InferOutput<typeof Record>;

/** A compiled form that is complete. */
export interface CompiledModel {
  directory: string;
  key: string;
  record: CompiledRecord;
}

/** The compiled form with this fingerprint, every byte of it checked; null when it is absent, incomplete or damaged. */
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
    return file !== null && stat?.size === size && (await hashFile(file, size, sha256)) === sha256;
  });
  return (await Promise.all(intact)).every(Boolean) ? compiled : null;
}

/** All complete compiled forms of a model; their bytes are not checked. */
export async function listCompiled(paths: StorePaths, model: ModelId): Promise<CompiledModel[]> {
  const names = await fs.readdir(paths.compiledModel(model)).catch(() => []);
  const keys = names.filter((name) => !name.startsWith('.'));
  const found = await Promise.all(keys.map((key) => readCompiled(paths, model, key).catch(() => null)));
  return found.filter((compiled) => compiled !== null);
}

/** All complete compiled forms of all models. */
export async function listAllCompiled(paths: StorePaths): Promise<(CompiledModel & { model: ModelId })[]> {
  const folders = await fs.readdir(paths.compiledRoot()).catch(() => []);
  const models = folders.map(idOfRepositoryFolder).filter((model) => model !== null);
  const found = models
    .sort()
    .map(async (model) => (await listCompiled(paths, model)).map((compiled) => ({ ...compiled, model })));
  return (await Promise.all(found)).flat();
}

async function readCompiled(paths: StorePaths, model: ModelId, key: string): Promise<CompiledModel | null> {
  // Not the real path: where the home is a link, that is outside of it.
  const directory = paths.compiled(model, key);
  if ((await paths.real(directory)) === null) return null;
  const text = await fs.readFile(join(directory, RECORD_FILE), 'utf8').catch(() => '');
  const record = v.safeParse(v.pipe(v.string(), v.parseJson(), Record), text);
  return record.success ? { directory, key, record: record.output } : null;
}

/**
 * Gives a finished compile its name: from then on it can be found. The record, with the hash of every file, is written
 * last, and one rename makes the whole visible.
 *
 * @param staging directory inside the model's compiled directory, with all files of the compile
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

/** Waits until a file is on the disk, which the process that wrote it may not ask for, and returns its size. */
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
 * Checks what a compile left. The process that wrote it ran a stranger's files: a link among its own would make the server write or publish
 * another file. Throws `engine_failed`.
 */
export async function checkPlainFiles(folder: string): Promise<void> {
  for (const name of await fs.readdir(folder)) {
    const found = await fs.lstat(join(folder, name));
    if (found.isFile() && found.nlink === 1) continue;
    throw new AssayError(
      'engine_failed',
      'The compile left something else than files of its own. Nothing of it is used.',
    );
  }
}

/**
 * Lets the other forms of a model have the files of a new one in place of their own, where both are the same: forms
 * that differ in their prompt length alone have the same weights. The new ones are taken, as their bytes have just been
 * read; whoever has an old one open keeps it. Where the system gives a file no second name, or replaces none that is
 * open, the copy stays.
 *
 * @param staging directory inside the model's compiled directory, for names that are not complete yet
 */
export async function shareFiles(
  paths: StorePaths,
  model: ModelId,
  staging: string,
  made: CompiledModel,
): Promise<void> {
  const mine = new Set(made.record.files.map(({ name, size, sha256 }) => `${name} ${size} ${sha256}`));
  const link = join(staging, 'link');
  for (const { directory, key, record } of await listCompiled(paths, model)) {
    if (key === made.key) continue;
    for (const { name, size, sha256 } of record.files) {
      if (!mine.has(`${name} ${size} ${sha256}`)) continue;
      await fs
        .link(paths.file(made.directory, name), link)
        .then(() => fs.rename(link, paths.file(directory, name)))
        .catch(() => fs.rm(link, { force: true }));
    }
  }
}

/**
 * Forms of other prompt lengths that stay beside a new one: small, as they share their files, but each is read in a
 * list.
 */
const OTHER_LENGTHS = 8;

/**
 * Takes away compiled forms that nothing will ever look for again: made by another runtime or compiler, or of other
 * weights. Of those that differ from the current one in their prompt length alone, the newest stay.
 *
 * @param staging directory inside the model's compiled directory, which is to be removed with what is put there
 */
export async function removeStale(
  paths: StorePaths,
  model: ModelId,
  staging: string,
  current: Fingerprint,
  inUse: (directory: string) => boolean,
): Promise<void> {
  // In one step: where a system moves no file that another process has open, all of them stay.
  const take = async ({ directory, key }: CompiledModel): Promise<void> => {
    if (!inUse(directory)) await fs.rename(directory, join(staging, key)).catch(() => undefined);
  };
  const lengths: { form: CompiledModel; made: number }[] = [];
  for (const form of await listCompiled(paths, model)) {
    const { source, runtime, compiler, dtype, device, plugin, maxPromptLen } = form.record.fingerprint;
    const otherFormat = dtype !== current.dtype;
    const sameDriver = device !== current.device || plugin === current.plugin;
    const sameTools = runtime === current.runtime && compiler === current.compiler && sameDriver;
    const same = sameTools && (otherFormat || source === current.source);
    if (!same) await take(form);
    else if (maxPromptLen !== current.maxPromptLen && form.key === fingerprintKey({ ...current, maxPromptLen })) {
      lengths.push({ form, made: (await fs.stat(join(form.directory, RECORD_FILE))).mtimeMs });
    }
  }
  lengths.sort((a, b) => b.made - a.made);
  for (const { form } of lengths.slice(OTHER_LENGTHS)) await take(form);
}
