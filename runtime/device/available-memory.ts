import { totalmem } from 'node:os';

/** Returns the bytes of memory that this process may use in all: those of the machine, or of its container. */
export function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
