import { readdirSync, readFileSync } from 'node:fs';

/** Ids of the live child processes of a process, on Linux; elsewhere, one that passes for the engine. */
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
