import { existsSync, realpathSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Lists the files, memory and devices that a process needs. The active layers of isolation block everything else. */
export interface ProcessNeeds {
  /** Absolute paths of the files and folders that the process reads, in addition to the program itself. */
  read: readonly string[];
  /** Absolute paths of the folders that the process writes to. */
  write: readonly string[];
  /** Maximum bytes of memory that a valid model can need. */
  memoryBytes: number;
  /**
   * True if the process uses native drivers: for a plugin, or for a device other than the CPU. Only the layer
   * `permissions` isolates it then.
   */
  drivers: boolean;
}

/**
 * Returns the files and folders that contain the program: the code of this package, and every `node_modules` folder
 * in and above it, in which an installed package finds its dependencies. Other files of the package's folder, which in
 * a checkout may be keys and settings, are not among them.
 */
export function programFolders(): string[] {
  const root = packageRoot();
  const above: string[] = [];
  for (let folder = root; folder !== dirname(folder); folder = dirname(folder))
    above.push(join(folder, 'node_modules'));
  const own = PROGRAM.map((name) => join(root, name));
  return [...own, ...above].filter((path) => existsSync(path));
}

/** Parts of this package that its processes run: `package.json` tells Node the kind of modules. */
const PROGRAM = ['package.json', 'dist', 'runtime', 'lib'];

/**
 * Returns the absolute paths of the targets of the symbolic links in a folder and its subfolders; none if the folder
 * does not exist. Skips links to missing files, which the compile reports if it needs them. A compile must be allowed
 * to read the targets, because the shared model cache consists of links.
 */
export async function linkTargets(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const links = entries.filter((entry) => entry.isSymbolicLink());
  const targets = links.map((entry) => realpath(join(entry.parentPath, entry.name)).catch(() => null));
  return (await Promise.all(targets)).filter((target) => target !== null);
}

/** Returns the nearest folder above this file that has a `package.json`: the repository, or the installed package. */
function packageRoot(): string {
  let folder = dirname(realpathSync(fileURLToPath(import.meta.url)));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
