import { availableParallelism } from 'node:os';
import type { ProcessNeeds } from './process-needs.ts';

/** What Node and its threads take of the limit before a model does: V8's code and young heap, and stacks. */
const BASE_BYTES = 2 ** 30;
const STACK_BYTES = 16 * 2 ** 20;

/**
 * Returns the command line in front of a program that limits what it may allocate (RLIMIT_DATA, getrlimit(2)) and lets
 * a crash write no core
 * file, which would have prompts in it. Allocations beyond fail inside the process at once, before the watch on its
 * memory sees them.
 */
export function processLimits({ memoryBytes }: Pick<ProcessNeeds, 'memoryBytes'>): string[] {
  const bytes = memoryBytes + BASE_BYTES + availableParallelism() * STACK_BYTES;
  return ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${Math.ceil(bytes / 1024)}; exec "$@"`, 'sh'];
}
