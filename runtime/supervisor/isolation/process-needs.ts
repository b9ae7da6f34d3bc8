import { existsSync, realpathSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a process has to reach; everything else is kept from it as far as the system can. */
export interface ProcessNeeds {
  /** Files and folders that it reads, beside the program itself. Absolute. */
  read: readonly string[];
  /** Folders that it writes. Absolute. */
  write: readonly string[];
  /** Bytes of memory that an honest model takes at most. */
  memoryBytes: number;
  /** Whether it drives another device than the CPU, or uses a plugin for one. */
  drivers: boolean;
}

/**
 * Returns the folders of the program: this package, and every `node_modules` above it, where an installed package
 * finds what it depends
 * on.
 */
export function programFolders(): string[] {
  const root = packageRoot();
  const above: string[] = [];
  for (let folder = root; folder !== dirname(folder); folder = dirname(folder))
    above.push(join(folder, 'node_modules'));
  return [root, ...above.filter((folder) => existsSync(folder))];
}

/** Returns the files that the links in a folder lead to: a compile reads the shared cache through links. */
export async function linkTargets(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const links = entries.filter((entry) => entry.isSymbolicLink());
  return Promise.all(links.map((entry) => realpath(join(entry.parentPath, entry.name))));
}

/** The nearest folder above this file with a `package.json`: the repository's, or the installed package's. */
function packageRoot(): string {
  let folder = dirname(realpathSync(fileURLToPath(import.meta.url)));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
