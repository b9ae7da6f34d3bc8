import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatBytes, SPARE_BYTES } from '../store/disk-error.ts';

/** The weights are in memory twice, as read from the file and as arranged for the kernels. */
const COPIES = 2;

/**
 * Returns why the weights in 32-bit floats, which the reference is computed from, are too large for this machine's
 * memory or for the disk beside the other forms; null where there is room.
 */
export function lackForReference(bytes: number, target: string): string | null {
  const memory = process.availableMemory();
  if (COPIES * bytes > memory) {
    return `that takes ${formatBytes(COPIES * bytes)} of memory, and ${formatBytes(memory)} are free`;
  }
  const { bavail, bsize } = statfsSync(existsSync(target) ? target : dirname(target));
  // The other forms together take less than the floats.
  if (2 * bytes + SPARE_BYTES > bavail * bsize) {
    return `that takes ${formatBytes(2 * bytes)} of disk, and ${formatBytes(bavail * bsize)} are free`;
  }
  return null;
}
