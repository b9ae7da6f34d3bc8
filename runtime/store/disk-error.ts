import { AssayError } from '../../lib/errors.ts';

/** Room that a download and a compile leave on the disk. */
export const SPARE_BYTES = 64 * 1024 * 1024;

/** An error of the file system in words for a user; any other error as it is. */
export function diskError(error: unknown, variable: 'HF_HUB_CACHE' | 'ASSAY_HOME'): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AssayError(
      'disk_full',
      `The disk of ${variable} is full. Free space (assay list, assay rm) or set ${variable} to a directory on a larger disk, then run the command again: what was done is kept.`,
      { cause: error },
    );
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new AssayError(
      'internal_error',
      `${variable} cannot be written to (${code}). Set it to a directory of yours.`,
      {
        cause: error,
      },
    );
  }
  if (!isFileError(error)) return error;
  return new AssayError(
    'internal_error',
    `A file of ${variable} could not be used (${code}). Try again; the log tells which.`,
    {
      cause: error,
    },
  );
}

/**
 * Whether the file system failed. Errors of `fetch` have the system's error only as their cause, so one that names a system call
 * itself is of a file; and trying again does not help.
 */
export function isFileError(error: unknown): boolean {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

/** Bytes in words, as people read disks: 1.2 GB is 1,200,000,000 bytes. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
