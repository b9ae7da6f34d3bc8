import { readFileSync } from 'node:fs';

/** Ticks per second in which Linux counts processor time (USER_HZ). */
const TICKS = 100;

/** Returns the processor seconds that a process has used; NaN on systems other than Linux. */
export function processorSeconds(pid: number): number {
  const text = read(pid, 'stat');
  // User and kernel time are fields 14 and 15 (proc_pid_stat(5)). The text is split only after field 2, the name of the
  // process, because that may contain spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return text === '' ? Number.NaN : (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Returns the resident bytes of a process; NaN on systems other than Linux. */
export function residentBytes(pid: number): number {
  return 1024 * Number(/^VmRSS:\s*(\d+) kB$/m.exec(read(pid, 'status'))?.[1] ?? Number.NaN);
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // not Linux, or the process has ended
  }
}
