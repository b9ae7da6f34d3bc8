import { readFile } from 'node:fs/promises';

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
