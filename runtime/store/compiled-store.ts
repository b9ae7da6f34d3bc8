import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import type { ModelId } from '../../lib/model-id.ts';
import { hashFile } from './digest.ts';
import { Fingerprint, fingerprintKey } from './fingerprint.ts';
import { isSafeRepositoryPath, join, type StorePaths } from './paths.ts';

const RECORD_FILE = 'fingerprint.json';

const Record = v.strictObject({
  fingerprint: Fingerprint,
  /** The device and the prompt length that the compile really gave. */
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  maxPromptLen: v.number(),
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

async function readCompiled(paths: StorePaths, model: ModelId, key: string): Promise<CompiledModel | null> {
  const directory = await paths.real(paths.compiled(model, key));
  if (directory === null) return null;
  const text = await fs.readFile(join(directory, RECORD_FILE), 'utf8').catch(() => '');
  const record = v.safeParse(v.pipe(v.string(), v.parseJson(), Record), text);
  return record.success ? { directory, key, record: record.output } : null;
}

/**
 * Gives a finished compile its name: from then on it can be found. The record, with the hash of every file, is written last, and
 * one rename makes the whole visible.
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
      const { size } = await fs.stat(join(staging, name));
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

/** Removes compiled forms that nothing will ever look for again: made by another runtime or compiler, or of other weights. */
export async function removeStale(
  paths: StorePaths,
  model: ModelId,
  current: Fingerprint,
  inUse: (directory: string) => boolean,
): Promise<void> {
  for (const { directory, record } of await listCompiled(paths, model)) {
    const { source, runtime, compiler, dtype } = record.fingerprint;
    const otherFormat = dtype !== current.dtype;
    const same =
      runtime === current.runtime && compiler === current.compiler && (otherFormat || source === current.source);
    if (!same && !inUse(directory)) await paths.remove(directory);
  }
}
