import { existsSync, realpathSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Lists what a process needs to reach; the system blocks everything else as far as it can. */
export interface ProcessNeeds {
  /** Absolute paths of files and folders that it reads, besides the program itself. */
  read: readonly string[];
  /** Absolute paths of folders that it writes. */
  write: readonly string[];
  /** Bytes of memory that no valid model exceeds. */
  memoryBytes: number;
  /** True when it uses a device other than the CPU, or a plugin. */
  drivers: boolean;
}

/**
 * Returns the folders of the program: this package, and every `node_modules` above it, where an installed package finds
 * its dependencies.
 */
export function programFolders(): string[] {
  const root = packageRoot();
  const above: string[] = [];
  for (let folder = root; folder !== dirname(folder); folder = dirname(folder))
    above.push(join(folder, 'node_modules'));
  return [root, ...above.filter((folder) => existsSync(folder))];
}

/** Returns the targets of the links in a folder: a compile reads the shared cache through links. */
export async function linkTargets(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const links = entries.filter((entry) => entry.isSymbolicLink());
  return Promise.all(links.map((entry) => realpath(join(entry.parentPath, entry.name))));
}

/** Returns the nearest folder above this file with a `package.json`: the repository's, or the installed package's. */
function packageRoot(): string {
  let folder = dirname(realpathSync(fileURLToPath(import.meta.url)));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
