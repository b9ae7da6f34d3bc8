import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Maximum number of checks after `SIGSTOP` whether the process has stopped. */
const MOST_LOOKS = 1000;

/**
 * Kills a process that `Isolation.launch` started and, on Linux, all its descendants, and closes the channel to it.
 * Killing only bwrap is not enough: while bwrap starts, its child does not end with it yet and would be left behind
 * (github.com/containers/bubblewrap/issues/633).
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
  // If something else killed bwrap, the Node process that it left behind ends when its channel closes.
  if (child.connected) child.disconnect();
}

/**
 * Option of `fork` that puts a process and its descendants in a group of their own, so that `killGroup` can kill it.
 * Only Linux has bwrap; on Windows the option would open a window.
 */
export const OWN_GROUP = { detached: process.platform === 'linux' };

/**
 * Kills what is left of the group of a process that was started with `OWN_GROUP` and has just ended. If something other
 * than this server kills bwrap while it starts, its child waits for it forever
 * (github.com/containers/bubblewrap/issues/633). Must be called as soon as the process ends: later, its id may be that
 * of another group.
 */
export function killGroup({ pid }: ChildProcess): void {
  if (OWN_GROUP.detached && pid !== undefined) kill(-pid);
}

/** Returns the ids of all descendants of a process, parents before their children. */
function descendants(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return [...children, ...children.flatMap(descendants)];
}

/**
 * Returns Linux's letter for the state of a process, such as `T` for stopped (proc_pid_stat(5)); empty if the process
 * is gone.
 */
function stateOf(pid: number): string {
  // The program's name, in parentheses before the state, may itself contain spaces and parentheses.
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
    // The process has already ended.
  }
}
