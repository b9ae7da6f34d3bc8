import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { asModelId, type ModelId } from '../../lib/model-id.ts';

/*
 * The one module of the store that joins paths. Whatever comes from outside (ids, revisions, file names in a
 * repository,
 * links on the disk) is checked here, so that nothing is ever read, written or removed outside the roots.
 */

/** The directories that the store may touch. All absolute. */
export interface Roots {
  /** Hugging Api cache: blobs, snapshots, refs, `.locks`. */
  hubCache: string;
  /** Compiled models, keys, logs. */
  assayHome: string;
  /** Models that ship with Assay, one directory each, read only; null where there are none. */
  bundled: string | null;
}

/** Joins parts that are known to be ours. */
export const join = path.join;
export const dirname = path.dirname;
export const baseName = path.basename;

/** The path from a directory to a file, with `/` between the parts on every system. */
export function relativeTo(directory: string, file: string): string {
  return path.relative(directory, file).split(path.sep).join('/');
}

/** `~` and `~/x` become the home directory; a relative path becomes absolute. */
export function expandHome(text: string, home: string): string {
  return path.resolve(text === '~' || text.startsWith('~/') ? path.join(home, text.slice(1)) : text);
}

const COMMIT = /^[0-9a-f]{40}$/;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const KEY = /^[a-z0-9][a-z0-9_-]{0,127}$/;
/** What some system reads as more than a name: separators, drive letters, wildcards, control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const UNSAFE_CHARACTER = /[\\:*?"<>|\u0000-\u001f\u007f]/;
/** Names that Windows gives to devices, with any extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

function safeSegment(segment: string): boolean {
  if (segment === '' || segment === '.' || segment === '..' || segment.length > 255) return false;
  return !UNSAFE_CHARACTER.test(segment) && !DEVICE_NAME.test(segment) && !/[. ]$/.test(segment);
}

/** Whether a path inside a repository (`onnx/model.onnx`) is safe to make a local path of. */
export function isSafeRepositoryPath(file: string): boolean {
  const segments = file.split('/');
  return file.length <= 1024 && segments.length <= 16 && segments.every(safeSegment);
}

function refuse(what: string): never {
  throw new AssayError('invalid_value', `The ${what} is not one that can be stored safely.`);
}

function checked(value: string, pattern: RegExp, what: string): string {
  return pattern.test(value) ? value : refuse(what);
}

/** `models--<namespace>--<name>`. An id with `--` or a reserved name in it is none that a hub could hold. */
function repositoryFolder(id: ModelId): string {
  const [namespace = '', name = ''] = id.split('/');
  if (asModelId(id) === null || id.includes('--') || !safeSegment(namespace) || !safeSegment(name)) {
    throw new AssayError(
      'invalid_model_id',
      'No hub has a model of this name: "--" and names that a system reserves are not allowed.',
      {
        param: 'model',
      },
    );
  }
  return `models--${namespace}--${name}`;
}

/** The id of a repository's folder, or null for a folder of something else. */
export function idOfRepositoryFolder(folder: string): ModelId | null {
  const [kind, namespace, name, more] = folder.split('--');
  return kind === 'models' && namespace && name && more === undefined ? asModelId(`${namespace}/${name}`) : null;
}

/**
 * Every place in the roots. The names inside the hub cache are those of `huggingface_hub` (its "manage cache" guide).
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

  /** A file of a repository under a directory that this class gave out. */
  file(directory: string, file: string): string {
    return isSafeRepositoryPath(file) ? path.join(directory, ...file.split('/')) : refuse('file name');
  }

  ref(id: ModelId, revision: string): string {
    return this.file(path.join(this.repository(id), 'refs'), revision);
  }

  blobs(id: ModelId): string {
    return path.join(this.repository(id), 'blobs');
  }

  /** A blob is named by its sha256 (large files) or its git sha1 (small ones). */
  blob(id: ModelId, hash: string): string {
    return path.join(this.blobs(id), checked(hash, HASH, 'file hash'));
  }

  /**
   * Bytes of a blob that is not complete yet. Our own name: other tools write `.incomplete` files and would not know
   * our holes.
   */
  partialBlob(id: ModelId, hash: string): string {
    return `${this.blob(id, hash)}.assay-partial`;
  }

  /** Which bytes of the partial blob are there. */
  partialJournal(id: ModelId, hash: string): string {
    return `${this.blob(id, hash)}.assay-journal`;
  }

  locks(id: ModelId): string {
    return path.join(this.roots.hubCache, '.locks', repositoryFolder(id));
  }

  /** The lock that our own processes hold while they change a model. */
  modelLock(id: ModelId): string {
    return path.join(this.locks(id), 'assay.lock');
  }

  /** The lock that Python tools hold while they fetch one file. */
  blobLock(id: ModelId, hash: string): string {
    return path.join(this.locks(id), `${checked(hash, HASH, 'file hash')}.lock`);
  }

  /** All compiled forms of all models. */
  compiledRoot(): string {
    return path.join(this.roots.assayHome, 'compiled');
  }

  compiledModel(id: ModelId): string {
    return path.join(this.compiledRoot(), repositoryFolder(id));
  }

  /** One compiled form; `key` is the short hash of its fingerprint. */
  compiled(id: ModelId, key: string): string {
    return path.join(this.compiledModel(id), checked(key, KEY, 'compile key'));
  }

  /** Where a compile works before it is complete; beside the result, so that a rename publishes it. */
  staging(id: ModelId): string {
    return path.join(this.compiledModel(id), '.staging');
  }

  /** The lock that a process holds while it compiles the model. */
  compileLock(id: ModelId): string {
    return path.join(this.compiledModel(id), '.lock');
  }

  /** The directory of a bundled model: `assay/<name>` is `<bundled>/<name>`. Null for any other id. */
  bundledModel(id: ModelId): string | null {
    const [namespace, name = ''] = id.split('/');
    if (namespace !== 'assay' || this.roots.bundled === null || !safeSegment(name)) return null;
    return path.join(this.roots.bundled, name);
  }

  /** The calibration that was fitted here for a model with these files. */
  calibration(fingerprint: string): string {
    return path.join(this.roots.assayHome, 'calibrations', `${checked(fingerprint, HASH, 'fingerprint')}.json`);
  }

  /** The calibration that ships with a model; null for models that do not ship. */
  bundledCalibration(id: ModelId): string | null {
    const directory = this.bundledModel(id);
    return directory === null ? null : path.join(directory, 'calibration.json');
  }

  /**
   * Follows links and gives the real path, if it is inside the root that `target` belongs to; null when it leads
   * elsewhere or
   * to nothing.
   */
  async real(target: string): Promise<string | null> {
    const root = await this.#realRootOf(target);
    const real = await fs.realpath(target).catch(() => null);
    return root !== null && real !== null && isInside(root, real) ? real : null;
  }

  /** Makes a directory and its parents. Throws `invalid_value` when a link on the way leads out of the root. */
  async makeDirectory(directory: string): Promise<void> {
    const root = this.#rootOf(directory);
    await fs.mkdir(root, { recursive: true });
    // From the root downwards, so that nothing is made behind a link that leads out.
    let current = root;
    for (const segment of path.relative(root, directory).split(path.sep).filter(Boolean)) {
      current = path.join(current, segment);
      await fs.mkdir(current).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      if ((await this.real(current)) !== null) continue;
      // Another process that removes the model may have taken it away again.
      if (await isGone(current)) return this.makeDirectory(directory);
      refuse('directory (a link leads out of the model store)');
    }
  }

  /**
   * Removes a file or a directory with all in it; links are removed, never followed. Gives the bytes that were freed.
   *
   * @param counted inodes whose bytes count no more, to which those of this removal are added: a file may have several
   *   names
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
    return roots.filter((root) => isInside(root, target)).sort((a, b) => b.length - a.length)[0] ?? refuse('path');
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

/** Bytes of a file, or of all files in a directory; links count nothing, and a file with several names counts once. */
async function sizeOf(target: string, counted: Set<number>): Promise<number> {
  const stat = await fs.lstat(target).catch(() => null);
  if (stat?.isFile()) {
    if (counted.has(stat.ino)) return 0;
    counted.add(stat.ino);
    return stat.size;
  }
  if (!stat?.isDirectory()) return 0;
  // Another tool may be removing it, too.
  const names = await fs.readdir(target).catch(() => []);
  const sizes = await Promise.all(names.map((name) => sizeOf(path.join(target, name), counted)));
  return sizes.reduce((sum, size) => sum + size, 0);
}
