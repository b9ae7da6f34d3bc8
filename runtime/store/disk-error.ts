import { AssayError } from '../../lib/errors.ts';

/** Bytes of free disk space that a download or a compile must leave. */
export const SPARE_BYTES = 64 * 1024 * 1024;

/**
 * Converts an error of the file system to an `AssayError` that tells the user what to do: `disk_full` if the disk or a
 * quota is full, otherwise `internal_error`. Returns any other error unchanged.
 *
 * @param variable environment variable that sets the directory in which the error occurred
 */
export function diskError(error: unknown, variable: 'HF_HUB_CACHE' | 'ASSAY_HOME'): unknown {
  const code = systemCode(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AssayError(
      'disk_full',
      `The disk of ${variable} is full. Free space (assay list, assay rm) or set ${variable} to a directory on a larger disk, then run the command again. It continues where it stopped.`,
      { cause: error },
    );
  }
  if (code === 'EFBIG') {
    return new AssayError(
      'disk_full',
      `The disk of ${variable} does not take files this large (FAT32: 4 GiB), or a limit of this account forbids them (ulimit -f). Set ${variable} to a directory on another disk, then run the command again.`,
      { cause: error },
    );
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || isMkdir(error)) {
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

/** Tells whether a directory could not be created. The code may mislead: `ENOENT` for a read-only file system. */
function isMkdir(error: unknown): boolean {
  return isFileError(error) && error.syscall === 'mkdir';
}

/** Returns an error's `code`, such as the operating system's `ENOENT`; undefined if it has none. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/**
 * Tells whether an error comes from the file system. Another attempt does not help then. Such an error has the name of
 * a system call itself; for an error of `fetch`, only its cause has one.
 */
export function isFileError(error: unknown): error is Error & { syscall: string } {
  return error instanceof Error && 'syscall' in error && typeof error.syscall === 'string';
}
