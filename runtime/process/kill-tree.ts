import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

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

/** Clock ticks per second in `/proc`, which Linux sets to 100 for every program (`USER_HZ`, proc_pid_stat(5)). */
const TICKS_PER_SECOND = 100;

/**
 * Returns the resident bytes of a process and all its descendants. Returns null if the process has ended, if `pid` is
 * undefined, and on systems other than Linux.
 */
export async function residentBytes(pid: number | undefined): Promise<number | null> {
  return sumOverTree(pid, 'status', (status) => {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/mu.exec(status)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  });
}

/**
 * Returns the milliseconds of processor time that a process and all its descendants have used, in steps of 10. Includes
 * descendants that have ended and been waited for. Returns null if the process has ended, if `pid` is undefined, and
 * on systems other than Linux.
 */
export async function processorMs(pid: number | undefined): Promise<number | null> {
  return sumOverTree(pid, 'stat', (stat) => {
    // The program's name, in parentheses, may itself contain spaces and parentheses. After it, the state is field 3;
    // utime, stime, cutime and cstime are fields 14 to 17.
    const ticks = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15);
    return ticks.reduce((sum, value) => sum + Number(value), 0) * (1000 / TICKS_PER_SECOND);
  });
}

/** Sums what `parse` finds in one file of `/proc/<pid>`, over a process and all its descendants. */
async function sumOverTree(
  pid: number | undefined,
  file: string,
  parse: (text: string) => number | null,
): Promise<number | null> {
  if (process.platform !== 'linux' || pid === undefined) return null;
  const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => null);
  const [text, children] = await Promise.all([read(file), read(`task/${pid}/children`)]);
  const own = text === null ? null : parse(text);
  if (own === null || children === null) return null;
  const ids = children.trim().split(' ').filter(Boolean).map(Number);
  const below = await Promise.all(ids.map((child) => sumOverTree(child, file, parse)));
  return below.reduce<number>((sum, value) => sum + (value ?? 0), own);
}
