import { totalmem } from 'node:os';

/** Bytes of memory that this process may use in all: the machine's, or those of the container it runs in. */
export function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
