import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatBytes } from '../../lib/format-bytes.ts';
import { SPARE_BYTES } from '../store/disk-error.ts';

/** Copies of the weights in memory at the same time: as read from the file, and in the layout of the kernels. */
const COPIES = 2;

/**
 * Returns the reason why the weights in 32-bit floats, from which the reference logits are computed, are too large for
 * the memory, or for the disk beside the other weight forms; null if there is enough space.
 *
 * @param bytes size of the weights in 32-bit floats
 * @param target folder for the compiled model, which need not exist yet
 */
export function lackForReference(bytes: number, target: string): string | null {
  const memory = process.availableMemory();
  if (COPIES * bytes > memory) {
    return `that takes ${formatBytes(COPIES * bytes)} of memory, and ${formatBytes(memory)} are free`;
  }
  const { bavail, bsize } = statfsSync(existsSync(target) ? target : dirname(target));
  // All other forms together are smaller than the one in 32-bit floats.
  if (2 * bytes + SPARE_BYTES > bavail * bsize) {
    return `that takes ${formatBytes(2 * bytes)} of disk, and ${formatBytes(bavail * bsize)} are free`;
  }
  return null;
}
