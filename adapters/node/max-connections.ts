import { readFileSync } from 'node:fs';

const DEFAULT = 1024;
/** Descriptors that stay free for the server's own files, its child processes and downloads. */
const RESERVED = 64;
/** Number of connections that the server accepts even if fewer descriptors remain. */
const MINIMUM = 8;

/**
 * Returns the maximum number of connections: 1,024, or fewer if the system lets this process open few files
 * (`ulimit -n`). Without that bound, connections would take the last descriptors, and every request that reads a file
 * would fail.
 *
 * @param limits text of `/proc/self/limits` (proc_pid_limits(5)); empty where the system has no such file
 */
export function maxConnections(limits = ownLimits()): number {
  const files = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return files === undefined ? DEFAULT : Math.max(MINIMUM, Math.min(DEFAULT, Number(files) - RESERVED));
}

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
