import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import { diskError } from '../store/disk-error.ts';
import { tryLock } from '../store/lock.ts';
import { PLATFORM, PLUGINS, type Plugin, wheelFor } from './catalogue.ts';
import { checkWheel, fetchWheel, type WheelAccess } from './fetch-wheel.ts';
import { fileIn, unpackWheel } from './unpack-wheel.ts';

const RECORD_FILE = 'plugin.json';

const Record = v.object({
  name: v.string(),
  version: v.string(),
  platform: v.string(),
  sha256: v.string(),
  files: v.array(v.object({ name: v.string(), size: v.number() })),
});

/** Describes a plugin that is installed on this machine. */
export interface InstalledPlugin {
  plugin: Plugin;
  directory: string;
  /** Absolute path of the plugin's library, which onnxruntime loads. */
  library: string;
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

  /** Lists the installed plugins, in the versions that this version of Assay uses. */
  async list(): Promise<InstalledPlugin[]> {
    const found = await Promise.all(PLUGINS.map((plugin) => this.find(plugin)));
    return found.filter((one) => one !== null);
  }

  /** Returns an installed plugin and checks its files; null if this version of it is not installed. */
  async find(plugin: Plugin): Promise<InstalledPlugin | null> {
    const wheel = plugin.wheels[this.#platform];
    const directory = this.#directory(plugin);
    if (!wheel || !(await fs.stat(directory).catch(() => null))) return null;
    const text = await fs.readFile(join(directory, RECORD_FILE), 'utf8').catch(() => '');
    const record = v.safeParse(v.pipe(v.string(), v.parseJson(), Record), text);
    const library = fileIn(directory, wheel.library);
    const broken = (damage: string): InstalledPlugin => ({ plugin, directory, library, bytes: 0, damage });
    if (!record.success || record.output.sha256 !== wheel.sha256) return broken('it was not installed completely');
    const { files } = record.output;
    for (const { name, size } of files) {
      const stat = await fs.stat(fileIn(directory, name)).catch(() => null);
      if (stat?.size !== size) return broken(`its file ${name.split('/').at(-1)} is missing or changed`);
    }
    return { plugin, directory, library, bytes: files.reduce((sum, { size }) => sum + size, 0), damage: null };
  }

  /**
   * Installs a plugin, from the Python registry or from a local wheel. After an interruption, the next call continues
   * the download. Throws `invalid_value` (no wheel for this platform), `hub_unreachable`, `engine_failed` (wrong
   * content), `disk_full` or `operation_in_progress`.
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
      try {
        const downloaded = join(this.#root, `.${wheel.file}`);
        if ('file' in from) await checkWheel(from.file, wheel);
        else await fetchWheel(plugin, wheel, downloaded, from);
        const staging = join(this.#root, `.staging-${plugin.name}`);
        await fs.rm(staging, { recursive: true, force: true });
        const files = await unpackWheel('file' in from ? from.file : downloaded, staging);
        const record = {
          name: plugin.name,
          version: plugin.version,
          platform: this.#platform,
          sha256: wheel.sha256,
          files,
        };
        await fs.writeFile(join(staging, RECORD_FILE), `${JSON.stringify(record, null, 2)}\n`, { flush: true });
        await fs.rm(directory, { recursive: true, force: true });
        await fs.rename(staging, directory);
        await fs.rm(downloaded, { force: true });
      } finally {
        lock.discard();
      }
    } catch (error) {
      throw diskError(error, 'ASSAY_HOME');
    }
    return (await this.find(plugin))!;
  }

  /** Removes every version of a plugin and its partial downloads. Returns false if there were none. */
  async remove(plugin: Plugin): Promise<boolean> {
    const names = await fs.readdir(this.#root).catch(() => [] as string[]);
    const wheels = Object.values(plugin.wheels).map(({ file }) => `.${file}`);
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
}
