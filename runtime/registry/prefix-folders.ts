import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { AssayError, messageOf } from '../../lib/errors.ts';
import { VERSION } from '../../lib/version.ts';
import { kernelFamily } from '../compile/kernels.ts';
import type { LoadSpec } from '../protocol/messages.ts';
import type { CompiledModel } from '../store/compiled-store.ts';

/** Names the folder of saved prefixes, and says how many bytes of them a model may have. */
export interface PrefixSettings {
  dir: string;
  maxBytes: number;
}

const KEY_FILE = 'saved-prefixes.key';
const KEY_BYTES = 32;

/**
 * Gives each loaded model a folder for its saved prefixes, and a key for its files: both follow from the model's files,
 * its precision and this version, so a model can neither read nor meet the prefixes of another. The key that they are
 * derived from is in the home folder.
 */
export class PrefixFolders {
  readonly #settings: PrefixSettings;
  readonly #key: Uint8Array;
  readonly #used = new Set<string>();

  private constructor(settings: PrefixSettings, key: Uint8Array) {
    this.#settings = settings;
    this.#key = key;
  }

  /**
   * Opens or creates the folder and the key.
   *
   * @throws AssayError `invalid_value` if other accounts may read or write one of them, or if they cannot be made
   */
  static async open(settings: PrefixSettings, home: string): Promise<PrefixFolders> {
    const { dir } = settings;
    try {
      await fs.mkdir(dir, { recursive: true, mode: 0o700 });
      const file = join(home, KEY_FILE);
      await fs.mkdir(home, { recursive: true, mode: 0o700 });
      await fs.writeFile(file, randomBytes(KEY_BYTES), { flag: 'wx', mode: 0o600 }).catch((error) => {
        if (error.code !== 'EEXIST') throw error;
      });
      for (const [path, fix] of [
        [dir, '700'],
        [file, '600'],
      ] as const) {
        const { mode } = await fs.stat(path);
        if (process.platform !== 'win32' && (mode & 0o077) !== 0)
          throw new Error(`other accounts may read ${path}: chmod ${fix} it`);
      }
      const key = await fs.readFile(file);
      if (key.length !== KEY_BYTES) throw new Error(`${file} is damaged: remove it`);
      return new PrefixFolders(settings, key);
    } catch (cause) {
      const message = `--cache-dir cannot be used: ${messageOf(cause)}. Choose a folder of your own, or omit it.`;
      throw new AssayError('invalid_value', message, { cause });
    }
  }

  /**
   * Returns the folder and key of a compiled model, and removes the folders that were used longest ago of models that
   * are not loaded, if all take more bytes than one model may.
   */
  async of({ record }: CompiledModel): Promise<NonNullable<LoadSpec['saved']>> {
    const identity = JSON.stringify([record, VERSION, kernelFamily(), process.arch]);
    const digest = createHash('sha256').update(identity).digest('hex');
    const name = digest.slice(0, 32);
    const { dir, maxBytes } = this.#settings;
    const folder = join(dir, name);
    this.#used.add(name);
    await fs.mkdir(folder, { recursive: true, mode: 0o700 });
    const now = new Date();
    await fs.utimes(folder, now, now);
    await this.#removeOld();
    const key = Buffer.from(hkdfSync('sha256', this.#key, '', `assay saved prefixes ${digest}`, KEY_BYTES)).toString(
      'hex',
    );
    return { folder, key, maxBytes };
  }

  async #removeOld(): Promise<void> {
    const { dir, maxBytes } = this.#settings;
    // Other things in the folder are none of ours.
    const names = (await fs.readdir(dir)).filter((name) => /^[0-9a-f]{32}$/.test(name) && !this.#used.has(name));
    const folders = await Promise.all(
      names.map(async (name) => {
        const path = join(dir, name);
        const sizes = (await fs.readdir(path)).map(async (file) => (await fs.stat(join(path, file))).size);
        const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
        return { path, bytes, usedMs: (await fs.stat(path)).mtimeMs };
      }),
    );
    folders.sort((a, b) => b.usedMs - a.usedMs);
    let left = maxBytes;
    for (const { path, bytes } of folders) {
      left -= bytes;
      if (left < 0) await fs.rm(path, { recursive: true, force: true });
    }
  }
}
