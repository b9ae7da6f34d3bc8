import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HubRepository } from '../hub/repository.ts';

/**
 * Returns the files of a downloaded model that differ from the hub's. A file has its name only once it is whole, so
 * every file that is there must be equal; files may be missing.
 */
export function halfFiles(base: string, { id, commit, files }: HubRepository): string[] {
  const snapshot = join(base, 'hf/hub', `models--${id.replace('/', '--')}`, 'snapshots', commit);
  if (!existsSync(snapshot)) return [];
  const present = readdirSync(snapshot, { recursive: true, withFileTypes: true }).filter(
    (entry) => !entry.isDirectory(),
  );
  return present.flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    const expected = files.find((file) => join(snapshot, file.path) === path);
    return expected && readFileSync(path).equals(expected.content) ? [] : [path];
  });
}
