import { availableParallelism } from 'node:os';
import type { ProcessNeeds } from './process-needs.ts';

/** Memory that Node itself needs without a model, in bytes: V8's compiled code and young heap. */
const BASE_BYTES = 2 ** 30;
/** Memory for the stack of each thread, in bytes. The number of processors stands for the number of threads. */
const STACK_BYTES = 16 * 2 ** 20;

/**
 * Returns the command prefix that runs a program with limited memory (RLIMIT_DATA, getrlimit(2)) and without core
 * files, which would contain prompts. Allocations beyond the limit fail at once, before the supervisor's next check of
 * the memory. Append the program and its arguments.
 */
export function processLimits({ memoryBytes }: Pick<ProcessNeeds, 'memoryBytes'>): string[] {
  const bytes = memoryBytes + BASE_BYTES + availableParallelism() * STACK_BYTES;
  return ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${Math.ceil(bytes / 1024)}; exec "$@"`, 'sh'];
}
