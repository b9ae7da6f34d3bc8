import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { diskError } from './disk-error.ts';
import { checked, isSafeRepositoryPath, refuseName, repositoryFolder, safeSegment } from './safe-names.ts';

/**
 * The only module of the store that joins paths. It checks names from outside (`safe-names.ts`) and links on the disk,
 * and thus never lets anything outside the roots be read, written or removed.
 */

/** Lists the absolute paths of the directories that the store may use. */
export interface Roots {
  /** Hugging Face cache, with blobs, snapshots, refs and `.locks`. */
  hubCache: string;
  /** Directory of compiled models, keys and logs. */
  assayHome: string;
  /** Directory of the models that ship with Assay, which is only read; null if there are none. */
  bundled: string | null;
}

/** Joins trusted parts of a path. Names from outside must go through `StorePaths`. */
export const join = path.join;
export const dirname = path.dirname;
export const baseName = path.basename;

/** Returns the path from a directory to a file, with `/` as the separator on every system. */
export function relativeTo(directory: string, file: string): string {
  return path.relative(directory, file).split(path.sep).join('/');
}

/** Expands `~` and `~/x` to paths in the home directory (`home`), and makes a relative path absolute. */
export function expandHome(text: string, home: () => string): string {
  return path.resolve(text === '~' || text.startsWith('~/') ? path.join(home(), text.slice(1)) : text);
}

/** Returns the hash of the blob of which a file is a part, or the record of its parts; null for any other name. */
export function hashOfPart(name: string): string | null {
  return /^([0-9a-f]+)\.assay-(?:partial|journal)$/.exec(name)?.[1] ?? null;
}

const COMMIT = /^[0-9a-f]{40}$/;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const KEY = /^[a-z0-9][a-z0-9_-]{0,127}$/;

/**
 * Builds every path inside the roots. The names inside the hub cache are those of `huggingface_hub` (its "manage cache"
 * guide).
 */
export class StorePaths {
  readonly roots: Roots;

  constructor(roots: Roots) {
    this.roots = roots;
  }

  repository(id: ModelId): string {
    return path.join(this.roots.hubCache, repositoryFolder(id));
  }

  snapshots(id: ModelId): string {
    return path.join(this.repository(id), 'snapshots');
  }

  snapshot(id: ModelId, commit: string): string {
    return path.join(this.snapshots(id), checked(commit, COMMIT, 'commit'));
  }

  snapshotFile(id: ModelId, commit: string, file: string): string {
    return this.file(this.snapshot(id, commit), file);
  }

  /**
   * Returns the path of a file with the relative path `file` in a directory that this class returned. Throws
   * `invalid_value` if `file` is not a safe path (`isSafeRepositoryPath`).
   */
  file(directory: string, file: string): string {
    return isSafeRepositoryPath(file) ? path.join(directory, ...file.split('/')) : refuseName('file name');
  }

  ref(id: ModelId, revision: string): string {
    return this.file(path.join(this.repository(id), 'refs'), revision);
  }

  blobs(id: ModelId): string {
    return path.join(this.repository(id), 'blobs');
  }

  /** Returns the path of a blob, which is named by its sha256 (large files) or its git sha1 (small files). */
  blob(id: ModelId, hash: string): string {
    return path.join(this.blobs(id), checked(hash, HASH, 'file hash'));
  }

  /**
   * Returns the path of an incomplete blob. Its suffix is not `.incomplete`, because other tools write such files and
   * do not expect holes in them.
   */
  partialBlob(id: ModelId, hash: string): string {
    return `${this.blob(id, hash)}.assay-partial`;
  }

  /** Returns the path of the file that records which bytes of an incomplete blob are present. */
  partialJournal(id: ModelId, hash: string): string {
    return `${this.blob(id, hash)}.assay-journal`;
  }

  locks(id: ModelId): string {
    return path.join(this.roots.hubCache, '.locks', repositoryFolder(id));
  }

  /** Returns the path of the lock that Assay's processes hold while they change a model. */
  modelLock(id: ModelId): string {
    return path.join(this.locks(id), 'assay.lock');
  }

  /** Returns the path of the lock that Python tools hold while they fetch one file. */
  blobLock(id: ModelId, hash: string): string {
    return path.join(this.locks(id), `${checked(hash, HASH, 'file hash')}.lock`);
  }

  /** Returns the directory of all compiled models. */
  compiledRoot(): string {
    return path.join(this.roots.assayHome, 'compiled');
  }

  compiledModel(id: ModelId): string {
    return path.join(this.compiledRoot(), repositoryFolder(id));
  }

  /**
   * Returns the directory of one compiled model.
   *
   * @param key its `fingerprintKey`
   */
  compiled(id: ModelId, key: string): string {
    return path.join(this.compiledModel(id), checked(key, KEY, 'compile key'));
  }

  /**
   * Returns the directory of a compile that is not complete. It is beside the result, because a rename publishes it.
   */
  staging(id: ModelId): string {
    return path.join(this.compiledModel(id), '.staging');
  }

  /** Returns the path of the lock that a process holds while it compiles the model. */
  compileLock(id: ModelId): string {
    return path.join(this.compiledModel(id), '.lock');
  }

  /** Returns the directory of a bundled model: `<bundled>/<name>` for the id `assay/<name>`, null for any other id. */
  bundledModel(id: ModelId): string | null {
    const [namespace, name = ''] = id.split('/');
    if (namespace !== 'assay' || this.roots.bundled === null || !safeSegment(name)) return null;
    return path.join(this.roots.bundled, name);
  }

  /** Returns the path of the file that records what a user chose for a model (`model-choice.ts`). */
  choice(id: ModelId): string {
    return path.join(this.roots.assayHome, 'choices', `${repositoryFolder(id)}.json`);
  }

  /**
   * Returns the path of the file for the calibration that is fitted on this machine for a model with this source hash.
   */
  calibration(fingerprint: string): string {
    return path.join(this.roots.assayHome, 'calibrations', `${checked(fingerprint, HASH, 'fingerprint')}.json`);
  }

  /**
   * Returns the path of the file for the calibration that ships with a bundled model; null for any other model. It is
   * not called `calibration.json`: some models have a source file of that name, and the calibration names the
   * fingerprint of the source files.
   */
  bundledCalibration(id: ModelId): string | null {
    const directory = this.bundledModel(id);
    return directory === null ? null : path.join(directory, 'assay-calibration.json');
  }

  /**
   * Resolves links and returns the real path of `target` if it is inside the root that contains `target`; null if it is
   * outside or does not exist. Throws `invalid_value` if no root contains `target`.
   */
  async real(target: string): Promise<string | null> {
    const root = await this.#realRootOf(target);
    const real = await fs.realpath(target).catch(() => null);
    return root !== null && real !== null && isInside(root, real) ? real : null;
  }

  /**
   * Creates a directory and its parents. Throws `invalid_value` if a link on the way leads out of the root that
   * contains the directory, and `internal_error` or `disk_full` if that root cannot be written to.
   */
  async makeDirectory(directory: string): Promise<void> {
    const root = this.#rootOf(directory);
    const variable = root === this.roots.hubCache ? 'HF_HUB_CACHE' : 'ASSAY_HOME';
    const refused = (error: unknown) => {
      throw diskError(error, variable);
    };
    await fs.mkdir(root, { recursive: true }).catch(refused);
    // Directories are created from the root downwards: creating them all at once could follow a link out of the root.
    let current = root;
    for (const segment of path.relative(root, directory).split(path.sep).filter(Boolean)) {
      current = path.join(current, segment);
      await fs.mkdir(current).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') refused(error);
      });
      if ((await this.real(current)) !== null) continue;
      // Another process that removes the model may have removed the directory again.
      if (await isGone(current)) return this.makeDirectory(directory);
      throw new AssayError(
        'invalid_value',
        `${relativeTo(root, current)} in ${variable} is a link that leads out of it, and such links are not followed. Replace it by the directory itself, or set ${variable} to a directory on that disk.`,
      );
    }
  }

  /**
   * Removes a file, or a directory with everything in it. Removes links without following them. Returns the size in
   * bytes of the removed files. Removes nothing and returns 0 if the parent directory is missing or outside its root.
   *
   * @param counted inodes of the files counted so far, because a file with several names (hard links) counts once;
   *   those of the files removed now are added
   */
  async remove(target: string, counted = new Set<number>()): Promise<number> {
    const parent = await this.real(path.dirname(target));
    if (parent === null) return 0;
    const bytes = await sizeOf(target, counted);
    await fs.rm(target, { recursive: true, force: true });
    return bytes;
  }

  #rootOf(target: string): string {
    const roots = [this.roots.hubCache, this.roots.assayHome, this.roots.bundled].filter((root) => root !== null);
    return roots.filter((root) => isInside(root, target)).sort((a, b) => b.length - a.length)[0] ?? refuseName('path');
  }

  async #realRootOf(target: string): Promise<string | null> {
    return fs.realpath(this.#rootOf(target)).catch(() => null);
  }
}

function isInside(root: string, target: string): boolean {
  const relative = path.relative(root, target);
  return relative === '' || (!relative.startsWith(`..${path.sep}`) && relative !== '..' && !path.isAbsolute(relative));
}

async function isGone(target: string): Promise<boolean> {
  return fs.lstat(target).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
}

/**
 * Returns the size in bytes of a file, or of all files in a directory. Links do not count, and a file with several
 * names counts once.
 */
async function sizeOf(target: string, counted: Set<number>): Promise<number> {
  const stat = await fs.lstat(target).catch(() => null);
  if (stat?.isFile()) {
    if (counted.has(stat.ino)) return 0;
    counted.add(stat.ino);
    return stat.size;
  }
  if (!stat?.isDirectory()) return 0;
  // Another tool may remove the directory at the same time.
  const names = await fs.readdir(target).catch(() => []);
  const sizes = await Promise.all(names.map((name) => sizeOf(path.join(target, name), counted)));
  return sizes.reduce((sum, size) => sum + size, 0);
}
