import { readFileSync } from 'node:fs';

/** Ticks of the clock in which Linux counts processor time (USER_HZ), a second. */
const TICKS = 100;

/** Processor seconds that a process has used so far; Linux only, elsewhere NaN. */
export function processorSeconds(pid: number): number {
  const text = read(pid, 'stat');
  // After the name, which may hold spaces: fields 14 and 15 are its time in user and in kernel mode (proc_pid_stat(5)).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return text === '' ? Number.NaN : (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Bytes that a process holds in memory; Linux only, elsewhere NaN. */
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
