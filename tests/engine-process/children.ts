import { readdirSync, readFileSync } from 'node:fs';

/** Returns the ids of a process's live child processes, on Linux; elsewhere, one that represents the engine. */
export function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux') return [0];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [state, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /su, '')
          .split(' ');
        return Number(parent) === pid && state !== 'Z' ? [Number(name)] : [];
      } catch {
        return [];
      }
    });
}
