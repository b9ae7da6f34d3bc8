import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/**
 * Represents the hash by which a hub identifies a file, in hexadecimal: the sha256 of its bytes (64 digits), or git's
 * sha1 of a blob (40 digits).
 */
export type FileHash = string;

/**
 * Hashes a file with the method of the hash `like`: git's sha1 if `like` has 40 digits, otherwise sha256.
 *
 * @param size bytes of the file, which git hashes before the content (gitformat-object: `blob <size>\0<content>`)
 * @param options.onBytes called with the number of bytes read so far
 * @throws the file system's error if the file cannot be read; the reason of `options.signal` if it aborts
 */
export async function hashFile(
  file: string,
  size: number,
  like: FileHash,
  options: { signal?: AbortSignal; onBytes?: (bytes: number) => unknown } = {},
): Promise<FileHash> {
  const hash = like.length === 40 ? createHash('sha1').update(`blob ${size}\0`) : createHash('sha256');
  let bytes = 0;
  // A cast: a stream without an encoding yields buffers.
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    // The stream's own option `signal` would replace the reason with an `AbortError`.
    options.signal?.throwIfAborted();
    hash.update(chunk);
    bytes += chunk.length;
    options.onBytes?.(bytes);
  }
  return hash.digest('hex');
}
