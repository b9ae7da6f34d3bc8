import * as nodeFs from 'node:fs/promises';
import { systemCode } from './disk-error.ts';

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
