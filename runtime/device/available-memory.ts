import { totalmem } from 'node:os';

/**
 * Returns the bytes of memory that this process may use: those of the machine or, if smaller, of its container's limit.
 */
export function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
