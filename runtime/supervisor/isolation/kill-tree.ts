import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Most times that the state of a process is read after `SIGSTOP`, to see that it has stopped. */
const MOST_LOOKS = 1000;

/**
 * Kills a process that `Isolation.launch` started and, on Linux, all processes below it, and closes the channel to it.
 * Killing only bwrap is not enough: while it starts, its child waits for it, or has not yet asked to die with it, and
 * is left behind (github.com/containers/bubblewrap/issues/633).
 */
export function killTree(child: ChildProcess): void {
  const { pid, exitCode, signalCode } = child;
  if (process.platform === 'linux' && pid !== undefined && exitCode === null && signalCode === null) {
    // A stopped process starts no more processes, and does not reap its children, so their ids are not reused.
    child.kill('SIGSTOP');
    for (let look = 0; look < MOST_LOOKS && /^[RSD]$/u.test(stateOf(pid)); look++);
    for (const below of descendants(pid)) kill(below);
  }
  child.kill('SIGKILL');
  // If bwrap was killed by someone else, a Node that is left behind ends with the channel.
  if (child.connected) child.disconnect();
}

/** Returns the ids of the processes below a process, children before their own children. */
function descendants(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return [...children, ...children.flatMap(descendants)];
}

/** Returns the letter that Linux gives to the state of a process (proc_pid_stat(5)); empty if there is none. */
function stateOf(pid: number): string {
  // The name of the program, in parentheses before the state, may have spaces and parentheses itself.
  return /\) (\w) [^)]*$/u.exec(read(`/proc/${pid}/stat`))?.[1] ?? '';
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
