import { AssayError } from '../../lib/errors.ts';

/** Bytes that a download and a compile leave free on the disk. */
export const SPARE_BYTES = 64 * 1024 * 1024;

/** Turns an error of the file system into one for users; returns any other error unchanged. */
export function diskError(error: unknown, variable: 'HF_HUB_CACHE' | 'ASSAY_HOME'): unknown {
  const code = systemCode(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AssayError(
      'disk_full',
      `The disk of ${variable} is full. Free space (assay list, assay rm) or set ${variable} to a directory on a larger disk, then run the command again. It continues where it stopped.`,
      { cause: error },
    );
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new AssayError(
      'internal_error',
      `${variable} cannot be written to (${code}). Set it to a directory that you can write to.`,
      {
        cause: error,
      },
    );
  }
  if (!isFileError(error)) return error;
  return new AssayError(
    'internal_error',
    `A file of ${variable} could not be used (${code}). Try again; the log names the file.`,
    {
      cause: error,
    },
  );
}

/** Returns the code of the system's error, such as `ENOENT`; undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/**
 * Tells whether the file system failed. An error of `fetch` has the system's error as its cause, so an error that names
 * a system call itself comes from a file, and trying again does not help.
 */
export function isFileError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && typeof error.syscall === 'string';
}

/** Formats bytes in decimal units, as disks are sold: 1.2 GB is 1,200,000,000 bytes. */
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
