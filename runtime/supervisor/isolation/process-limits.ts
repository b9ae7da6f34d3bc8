import { availableParallelism } from 'node:os';
import type { ProcessNeeds } from './process-needs.ts';

/** Bytes that Node and its threads use without a model: V8's code and young heap, and stacks. */
const BASE_BYTES = 2 ** 30;
const STACK_BYTES = 16 * 2 ** 20;

/**
 * Returns the command line that limits the memory of a program (RLIMIT_DATA, getrlimit(2)) and turns off core files,
 * which would contain prompts. Allocations beyond the limit fail at once, before the watch on the memory sees them.
 */
export function processLimits({ memoryBytes }: Pick<ProcessNeeds, 'memoryBytes'>): string[] {
  const bytes = memoryBytes + BASE_BYTES + availableParallelism() * STACK_BYTES;
  return ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${Math.ceil(bytes / 1024)}; exec "$@"`, 'sh'];
}
