import { createWriteStream } from 'node:fs';
import * as fs from 'node:fs/promises';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as v from 'valibot';
import yauzl from 'yauzl';
import { AssayError } from '../../lib/errors.ts';
import { diskError } from '../store/disk-error.ts';
import { tryLock } from '../store/lock.ts';
import {
  PLATFORM,
  PLUGINS,
  type Plugin,
  type PluginWheel,
  type UnpackedFiles,
  type Wheel,
  wheelFor,
} from './catalogue.ts';
import { checkWheel, fetchWheel, type WheelAccess } from './fetch-wheel.ts';

const RECORD_FILE = 'plugin.json';

const Record = v.object({
  name: v.string(),
  version: v.string(),
  platform: v.string(),
  /** Hashes of all wheels of the plugin. */
  sha256: v.array(v.string()),
  files: v.array(v.object({ name: v.string(), size: v.number() })),
});

/** Describes a plugin that is installed on this machine. */
export interface InstalledPlugin {
  plugin: Plugin;
  directory: string;
  /** Absolute path of the plugin's library, which onnxruntime loads. */
  library: string;
  /** Directories in which a process must look for libraries before it loads the plugin's library; usually empty. */
  libraryPath: readonly string[];
  bytes: number;
  /** Reason why the plugin cannot be used; null if it is intact. */
  damage: string | null;
}

/** Manages the plugins in `<home>/plugins`. Each version has a directory, which is either complete or absent. */
export class PluginStore {
  readonly #root: string;
  readonly #platform: string;

  constructor(home: string, platform = PLATFORM) {
    this.#root = join(home, 'plugins');
    this.#platform = platform;
  }

  /** Lists the installed plugins in the versions that this version of Assay uses, including damaged ones. */
  async list(): Promise<InstalledPlugin[]> {
    const found = await Promise.all(PLUGINS.map((plugin) => this.find(plugin)));
    return found.filter((one) => one !== null);
  }

  /** Returns an installed plugin, and checks the sizes of its files; null if this version of it is not installed. */
  async find(plugin: Plugin): Promise<InstalledPlugin | null> {
    const wheel = plugin.wheels[this.#platform];
    const directory = this.#directory(plugin);
    if (!wheel || !(await fs.stat(directory).catch(() => null))) return null;
    const text = await fs.readFile(join(directory, RECORD_FILE), 'utf8').catch(() => '');
    const record = v.safeParse(v.pipe(v.string(), v.parseJson(), Record), text);
    const library = fileIn(directory, wheel.library);
    const named = wheelsOf(wheel).flatMap(({ files = {} }) => Object.values(files));
    const libraryPath = [...new Set(named.map((name) => dirname(fileIn(directory, name))))];
    const found = { plugin, directory, library, libraryPath };
    const broken = (damage: string): InstalledPlugin => ({ ...found, bytes: 0, damage });
    const hashes = record.success ? record.output.sha256 : [];
    if (!record.success || String(hashes) !== String(hashesOf(wheel))) return broken('it was not installed completely');
    const { files } = record.output;
    for (const { name, size } of files) {
      const stat = await fs.stat(fileIn(directory, name)).catch(() => null);
      if (stat?.size !== size) return broken(`its file ${name.split('/').at(-1)} is missing or changed`);
    }
    return { ...found, bytes: files.reduce((sum, { size }) => sum + size, 0), damage: null };
  }

  /**
   * Installs a plugin in place of the same version: from the Python registry, or from a local wheel (`file`), with the
   * wheels that it needs in the same folder. After an interruption, the next call continues the download.
   *
   * @throws AssayError `invalid_value` if there is no wheel for this platform, or a local wheel is missing;
   *   `hub_unreachable` if the registry does not answer or lacks a wheel; `engine_failed` for a wheel with wrong
   *   content; `disk_full` or `internal_error` if `ASSAY_HOME` is full or cannot be written to; `operation_in_progress`
   *   if another process is installing the plugin
   */
  async install(plugin: Plugin, from: { file: string } | WheelAccess): Promise<InstalledPlugin> {
    const wheel = wheelFor(plugin, this.#platform);
    const directory = this.#directory(plugin);
    try {
      await fs.mkdir(this.#root, { recursive: true, mode: 0o700 });
      const lock = tryLock(join(this.#root, `.${plugin.name}.lock`));
      if (!lock) {
        throw new AssayError(
          'operation_in_progress',
          `Another process is installing ${plugin.name}. Run the command again when it has finished.`,
        );
      }
      const staging = join(this.#root, `.staging-${plugin.name}`);
      try {
        const local = 'file' in from ? await localWheels(from.file, wheel) : await this.#download(plugin, wheel, from);
        await fs.rm(staging, { recursive: true, force: true });
        const files = [];
        for (const { path, files: wanted } of local) files.push(...(await unpackWheel(path, staging, wanted)));
        const { name, version } = plugin;
        const record = { name, version, platform: this.#platform, sha256: hashesOf(wheel), files };
        await fs.writeFile(join(staging, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, { flush: true });
        await fs.rm(directory, { recursive: true, force: true });
        await fs.rename(staging, directory);
        if (!('file' in from)) for (const { path } of local) await fs.rm(path, { force: true });
      } finally {
        // After a full disk, half a plugin would fill it.
        await fs.rm(staging, { recursive: true, force: true }).catch(() => undefined);
        lock.discard();
      }
    } catch (error) {
      throw diskError(error, 'ASSAY_HOME');
    }
    return (await this.find(plugin))!;
  }

  /**
   * Removes every version of a plugin and its partial downloads. Returns false if there were none. Throws
   * `internal_error` if one of them cannot be removed.
   */
  async remove(plugin: Plugin): Promise<boolean> {
    const names = await fs.readdir(this.#root).catch(() => [] as string[]);
    const wheels = Object.values(plugin.wheels)
      .flatMap(wheelsOf)
      .map(({ file }) => `.${file}`);
    const own = names.filter(
      (name) =>
        name.startsWith(`${plugin.name}-`) ||
        name === `.staging-${plugin.name}` ||
        wheels.some((wheel) => name === wheel || name === `${wheel}.part`),
    );
    try {
      for (const name of own) await fs.rm(join(this.#root, name), { recursive: true, force: true });
    } catch (error) {
      throw diskError(error, 'ASSAY_HOME');
    }
    return own.length > 0;
  }

  #directory({ name, version }: Plugin): string {
    return join(this.#root, `${name}-${version}`);
  }

  /** Downloads all wheels of a plugin that are not here yet. Reports the bytes of all of them together. */
  async #download(plugin: Plugin, wheel: PluginWheel, access: WheelAccess): Promise<LocalWheel[]> {
    const wheels = wheelsOf(wheel);
    const total = wheels.reduce((sum, { bytes }) => sum + bytes, 0);
    const local: LocalWheel[] = [];
    let before = 0;
    for (const { files, package: from = plugin.package, ...one } of wheels) {
      const path = join(this.#root, `.${one.file}`);
      const onBytes = (bytes: number): void => access.onBytes(before + bytes, total);
      const there = await checkWheel(path, one).then(
        () => true,
        () => false,
      );
      if (!there) await fetchWheel({ plugin: plugin.name, package: from }, one, path, { ...access, onBytes });
      before += one.bytes;
      local.push({ path, files });
    }
    return local;
  }
}

/** Names a wheel on this machine whose content was checked, and the files to unpack from it (default: all). */
interface LocalWheel {
  path: string;
  files: UnpackedFiles | undefined;
}

type NeededWheel = Wheel & { package?: string; files: UnpackedFiles | undefined };

/** Returns all wheels of a plugin: its own first, then those that it needs. */
function wheelsOf({ file, bytes, sha256, files, needs = [] }: PluginWheel): NeededWheel[] {
  return [{ file, bytes, sha256, files }, ...needs];
}

const hashesOf = (wheel: PluginWheel): string[] => wheelsOf(wheel).map(({ sha256 }) => sha256);

/**
 * Checks a plugin's own wheel, and the wheels that it needs, which must be in the same directory. Throws
 * `invalid_value` if one is missing, and `engine_failed` for wrong content.
 */
async function localWheels(file: string, wheel: PluginWheel): Promise<LocalWheel[]> {
  const local = wheelsOf(wheel).map((one, index) => ({
    ...one,
    path: index === 0 ? file : join(dirname(file), one.file),
  }));
  for (const { path, ...one } of local) {
    if (!(await fs.stat(path).catch(() => null))) {
      // The name of a wheel's file begins with its package and version (PEP 427).
      const pinned = one.package ? ` It is of ${one.package}==${one.file.split('-')[1]}.` : '';
      const message = `There is no ${path}.${pinned} Fetch it (docs/devices.md), and run the command again.`;
      throw new AssayError('invalid_value', message, { param: 'file' });
    }
    await checkWheel(path, one);
  }
  return local;
}

/** Maximum number of files in a wheel. Known plugins have a few dozen. */
const MAX_FILES = 2_000;
/** Maximum bytes of an unpacked wheel. The largest known one has 600 MB. */
const MAX_BYTES = 2 ** 30;

/**
 * Unpacks a wheel (a zip file, PEP 427) to a directory. Returns its files, with names relative to the directory. Throws
 * an `Error` if the file is not a zip, if a name leads outside the directory, or if the wheel has too many files or
 * bytes.
 *
 * @param wanted files to unpack: name in the wheel and name to unpack to; default: all files, as they are
 */
async function unpackWheel(
  wheel: string,
  target: string,
  wanted?: UnpackedFiles,
): Promise<{ name: string; size: number }[]> {
  const archive = await yauzl.openPromise(wheel, { strictFileNames: true, autoClose: false });
  const files: { name: string; size: number }[] = [];
  let bytes = 0;
  try {
    for await (const entry of archive.eachEntry()) {
      const name = wanted ? wanted[entry.fileName] : entry.fileName;
      if (name === undefined || name.endsWith('/')) continue;
      bytes += entry.uncompressedSize;
      if (files.length >= MAX_FILES || bytes > MAX_BYTES)
        throw new Error('the wheel has too many files or bytes for a plugin');
      const file = resolve(target, name);
      if (!file.startsWith(resolve(target) + sep)) throw new Error('the wheel names a file outside of it');
      await mkdir(dirname(file), { recursive: true });
      await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(file, { flags: 'wx' }));
      // The files are libraries that the loader opens, so none needs to be executable.
      await chmod(file, 0o644);
      files.push({ name, size: entry.uncompressedSize });
    }
  } finally {
    archive.close();
  }
  return files;
}

/** Returns the path of a file in the directory of an unpacked wheel. */
function fileIn(directory: string, name: string): string {
  return join(directory, ...name.split('/'));
}
