import * as fs from 'node:fs/promises';
import * as nodeFs from 'node:fs/promises';
import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { type EncoderContract, encoderFiles, findEncoderContract } from '../contracts/encoder-contracts.ts';
import { RefusedContract } from '../contracts/published-files.ts';
import { CONFIG_BOUNDS, readBounded, readBoundedJson } from './bounded-file.ts';
import type { FileHash } from './digest.ts';
import { isFileError, systemCode } from './disk-error.ts';
import type { Dtype } from './dtypes.ts';
import { recordedChoice } from './model-choice.ts';
import { type FileEntry, type ModelFiles, type SelectOptions, selectModelFiles } from './model-files.ts';
import { dirname, join, relativeTo, type StorePaths } from './paths.ts';
import { idOfRepositoryFolder } from './safe-names.ts';

/** Maximum bytes of a file in `refs`, which holds the hash of a commit and perhaps white space. */
const MAX_REF_BYTES = 1024;

/** Describes a source model whose needed files are all on this machine. */
export interface LocalModel {
  id: ModelId;
  origin: 'hub' | 'bundled';
  /** Absolute path of its directory; the paths in `files` are relative to it. */
  directory: string;
  /** Hash of its commit on the hub; null for a bundled model. */
  commit: string | null;
  files: ModelFiles;
  /** Contract of an encoder model; null for a model that generates text. */
  contract: EncoderContract | null;
  /** Reason why the model cannot run here; absent if its small files show none. */
  refusal?: string;
  /** Checkpoint of the model that this one's adapter changes; absent for any other model. */
  base?: LocalModel;
  /** Revision of the base model that the adapter names, if another one is used because this one is not here. */
  missesRevision?: string;
}

interface FindOptions extends SelectOptions {
  /** Branch, tag or commit that the snapshot must have. Default: that of `main`, otherwise the newest. */
  revision?: string;
}

/**
 * Finds a snapshot of a model in the hub cache that has all files of a usable variant, whichever tool fetched it: that
 * of `refs/main`, otherwise the newest. Without one, finds the bundled model with that id. Returns null if there is
 * neither. Throws `internal_error` if this account may not read a snapshot.
 *
 * @param options.dtype number format to use from the hub cache; default: the best for the device
 */
export async function findLocalModel(
  paths: StorePaths,
  model: ModelId,
  options: FindOptions,
): Promise<LocalModel | null> {
  const cached = await findSnapshot(paths, model, options).catch((error: unknown) => {
    throw isFileError(error) ? unreadable(model, error) : error;
  });
  if (cached) return cached;
  const directory = paths.bundledModel(model);
  if (directory === null || !(await paths.real(directory))) return null;
  // A bundled model has only one number format; `dtype` selects among downloads.
  const selection = selectModelFiles(await entriesOf(paths, directory), { device: options.device });
  return 'files' in selection
    ? { id: model, origin: 'bundled', directory, commit: null, files: selection.files, contract: null }
    : null;
}

/**
 * Returns what the files of a model in the hub cache lack, as sentences, if no snapshot of it is usable; null if there
 * are no files of it, or a usable snapshot.
 */
export async function lackOfLocalModel(
  paths: StorePaths,
  model: ModelId,
  options: { device: Device; dtype?: Dtype },
): Promise<string | null> {
  let lack: string | null = null;
  for (const commit of await commitsOf(paths, model)) {
    const entries = await entriesOf(paths, paths.snapshot(model, commit));
    if (entries.length === 0) continue;
    const selection = selectModelFiles(entries, { ...options, ...(await fileOf(paths, model)) });
    if ('missing' in selection) lack ??= selection.missing;
    else if (isDescribed(selection.files)) return null;
    else lack ??= `Nothing was made yet from the metadata of ${selection.files.graph}.`;
  }
  return lack;
}

async function findSnapshot(paths: StorePaths, model: ModelId, options: FindOptions): Promise<LocalModel | null> {
  for (const commit of await commitsOf(paths, model, options.revision)) {
    const directory = paths.snapshot(model, commit);
    const entries = await entriesOf(paths, directory);
    const found = await contractOf(paths, directory, entries);
    const choice = { ...options, ...(options.base ? {} : await fileOf(paths, model)), contract: found.contract };
    const selection = selectModelFiles(entries, choice);
    if ('files' in selection && isDescribed(selection.files))
      return { id: model, origin: 'hub', directory, commit, files: selection.files, ...found };
  }
  return null;
}

/** Returns the GGUF file that a user chose for a model, as an option of the selection. */
async function fileOf(paths: StorePaths, model: ModelId): Promise<Pick<SelectOptions, 'file'>> {
  const { file } = await recordedChoice(paths, model);
  return file === undefined ? {} : { file };
}

/** Tells whether the files of a GGUF file's configuration and tokenizer are there; true for other layouts. */
function isDescribed({ layout, support }: ModelFiles): boolean {
  return layout !== 'gguf' || ['config.json', 'tokenizer.json'].every((name) => name in support);
}

/** Finds the contract of the encoder model in a directory. A file that cannot be read is ignored. */
async function contractOf(
  paths: StorePaths,
  directory: string,
  entries: readonly FileEntry[],
): Promise<Pick<LocalModel, 'contract' | 'refusal'>> {
  const names = new Set(entries.map(({ path }) => path));
  const read = Object.entries(encoderFiles(names)).map(async ([name, path]) => {
    const value = await readBoundedJson(paths.file(directory, path), CONFIG_BOUNDS, name).catch(() => undefined);
    return [name, value] as const;
  });
  try {
    return { contract: findEncoderContract({ paths: names, json: Object.fromEntries(await Promise.all(read)) }) };
  } catch (error) {
    if (error instanceof RefusedContract) return { contract: null, refusal: error.message };
    throw error;
  }
}

function unreadable(model: ModelId, cause: Error): AssayError {
  return new AssayError(
    'internal_error',
    `The files of ${model} in HF_HUB_CACHE cannot be read (${systemCode(cause)}). Give the account that runs Assay access to them, or delete them.`,
    { cause },
  );
}

/** Lists the ids of all repositories in the hub cache and of all bundled models, whether usable or not. */
export async function localModelIds(paths: StorePaths): Promise<ModelId[]> {
  const [cached, bundled] = await Promise.all([
    fs.readdir(paths.roots.hubCache).catch(() => []),
    paths.roots.bundled === null ? [] : fs.readdir(paths.roots.bundled).catch(() => []),
  ]);
  const ids = [
    ...cached.map(idOfRepositoryFolder),
    ...bundled.map((name) => idOfRepositoryFolder(`models--assay--${name}`)),
  ];
  return [...new Set(ids.filter((id) => id !== null))].sort();
}

/**
 * Returns the time at which a model was stored on this machine, in seconds since 1970-01-01 UTC; null if it is not
 * stored.
 */
export async function arrivalOf(paths: StorePaths, model: ModelId): Promise<number | null> {
  for (const folder of [paths.repository(model), paths.bundledModel(model)]) {
    const stat = folder === null ? null : await fs.stat(folder).catch(() => null);
    // Some file systems record no creation time; Node then reports 0.
    if (stat) return Math.floor((stat.birthtimeMs || stat.mtimeMs) / 1000);
  }
  return null;
}

/**
 * Lists the commits that have a snapshot: first the one in `refs/main`, then the others, newest first. With a revision,
 * only its commit.
 */
async function commitsOf(paths: StorePaths, model: ModelId, revision?: string): Promise<string[]> {
  const directory = paths.snapshots(model);
  if (!(await paths.real(directory))) return [];
  const names = (await fs.readdir(directory).catch(() => [])).filter((name) => /^[0-9a-f]{40}$/.test(name));
  const found = names.map(async (name) => {
    const stat = await fs.stat(join(directory, name)).catch(orGone(null));
    return stat && { name, time: stat.mtimeMs };
  });
  const byAge = (await Promise.all(found)).filter((commit) => commit !== null).sort((a, b) => b.time - a.time);
  const main = (await readBounded(paths.ref(model, revision ?? 'main'), MAX_REF_BYTES).catch(() => null)) ?? '';
  if (revision !== undefined) {
    return byAge.map(({ name }) => name).filter((name) => name === revision || name === main.trim());
  }
  return [...byAge.filter((c) => c.name === main.trim()), ...byAge.filter((c) => c.name !== main.trim())].map(
    (c) => c.name,
  );
}

/**
 * Returns an error handler that returns `absent` for a file or folder that is missing, of another kind, or a link to
 * itself, and rethrows other errors. Another tool may remove a model during a listing.
 */
function orGone<T>(absent: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(error.code)) return absent;
    throw error;
  };
}

/** Lists the files below a directory, without broken links and links to files outside the root. */
async function entriesOf(paths: StorePaths, directory: string): Promise<FileEntry[]> {
  if (!(await paths.real(directory))) return [];
  const found = await fs.readdir(directory, { recursive: true, withFileTypes: true }).catch(orGone([]));
  const entries = found
    .filter((entry) => !entry.isDirectory())
    .map(async (entry): Promise<FileEntry | null> => {
      const file = join(entry.parentPath, entry.name);
      const real = await paths.real(file);
      const stat = real ? await fs.stat(real).catch(() => null) : null;
      return stat?.isFile() ? { path: relativeTo(directory, file), size: stat.size } : null;
    });
  return (await Promise.all(entries)).filter((entry) => entry !== null);
}

/**
 * Links verified blobs into a snapshot directory, and records the commit in `refs`. The graph is linked last, so a
 * snapshot that has its graph is complete.
 *
 * @param snapshot.revision branch or tag to record in `refs`; a revision that equals the commit is not recorded
 * @param snapshot.graph path of the graph among `snapshot.files`
 */
export async function publishSnapshot(
  paths: StorePaths,
  model: ModelId,
  snapshot: { commit: string; revision: string; graph: string; files: readonly (FileEntry & { hash: FileHash })[] },
): Promise<void> {
  const { commit, revision, graph } = snapshot;
  const ordered = [...snapshot.files].sort((a, b) => Number(a.path === graph) - Number(b.path === graph));
  for (const file of ordered) {
    const link = paths.snapshotFile(model, commit, file.path);
    await paths.makeDirectory(dirname(link));
    await linkBlob(paths.blob(model, file.hash), link);
  }
  if (revision === commit) return;
  const ref = paths.ref(model, revision);
  await paths.makeDirectory(dirname(ref));
  await fs.writeFile(`${ref}.assay-new`, commit);
  await fs.rename(`${ref}.assay-new`, ref);
}

/** Creates a relative symbolic link, as `huggingface_hub` does, or what the disk allows instead. */
async function linkBlob(blob: string, link: string): Promise<void> {
  const target = relativeTo(dirname(link), blob);
  if ((await fs.readlink(link).catch(() => null)) === target) return;
  // Recursive, because a folder may be in the place of the link.
  await fs.rm(link, { force: true, recursive: true });
  await linkFile(blob, link, target);
}

/** Lists the file operations that make links. Tests replace them to make them fail. */
export type LinkOperations = Pick<typeof nodeFs, 'symlink' | 'link' | 'copyFile' | 'rename'>;

/** Error codes of links that are impossible: on exFAT, FAT32 and some network disks, on Windows without a privilege. */
const IMPOSSIBLE: readonly (string | undefined)[] = ['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'EXDEV'];

/**
 * Makes a file available under a second path, which must not exist: as a symbolic link, otherwise as a hard link,
 * otherwise as a copy.
 *
 * @param target text of the symbolic link: absolute, or relative to its directory
 */
export async function linkFile(
  file: string,
  link: string,
  target: string = file,
  fs: LinkOperations = nodeFs,
): Promise<void> {
  if (await done(fs.symlink(target, link, 'file'))) return;
  if (await done(fs.link(file, link))) return;
  // Renamed into place, because another process must not find half a file.
  await fs.copyFile(file, `${link}.assay-new`);
  await fs.rename(`${link}.assay-new`, link);
}

/** Returns false if a link could not be made because such links are impossible here. */
function done(made: Promise<void>): Promise<boolean> {
  return made.then(
    () => true,
    (error: unknown) => {
      if (!IMPOSSIBLE.includes(systemCode(error))) throw error;
      return false;
    },
  );
}
