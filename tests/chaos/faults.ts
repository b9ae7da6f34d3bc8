import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HubServer } from '../hub/hub-server.ts';
import type { Plan, TimedFault } from './plan.ts';
import type { Target } from './target.ts';

const MIB = 1024 * 1024;
/** Size of the disk that is filled, and the most memory that is taken, in MiB. */
const DISK_MIB = 384;
const MEMORY_MIB = 512;
/** Milliseconds between two pieces of work of a fault that lasts. */
const PIECE_MS = 100;

/** The machine that a run may break: its disk and its clock. */
export interface Machine {
  /** Folder of the server's files. */
  base: string;
  /** Environment of the server. */
  env: Record<string, string>;
  /** Faults that this machine cannot have, with the reason. */
  missing: Partial<Record<TimedFault, string>>;
  remove(): void;
}

/** Prepares a folder on a small disk of its own, and a clock that can jump, as far as this system allows. */
export function prepareMachine(base: string): Machine {
  const missing: Machine['missing'] = {};
  let mounted = false;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', base], { stdio: 'ignore' });
    mounted = true;
  } catch {
    missing['fill disk'] = 'mounting a tmpfs is not allowed here';
  }
  const library = globSync('/usr/lib/*/faketime/libfaketime.so.1')[0];
  if (!library) missing.clock = 'libfaketime is not installed (apt install faketime)';
  const env = library
    ? {
        LD_PRELOAD: library,
        FAKETIME_TIMESTAMP_FILE: join(base, 'clock'),
        FAKETIME_NO_CACHE: '1',
        // Jumps are those of the wall clock; a monotonic clock has none.
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      }
    : {};
  if (library) writeFileSync(join(base, 'clock'), '+0');
  return {
    base,
    env,
    missing,
    remove() {
      if (mounted) execFileSync('umount', ['-l', base]);
      rmSync(base, { recursive: true, force: true });
    },
  };
}

interface Scene {
  target: Target;
  machine: Machine;
  hub: HubServer;
}

/** Begins a fault, and resolves when it has ended. */
export async function inject(fault: TimedFault, forMs: number, scene: Scene): Promise<void> {
  const { target, machine, hub } = scene;
  switch (fault) {
    case 'kill':
      // The last one is the process itself, where a sandbox is around it.
      return signal((await target.children('models')).slice(-1), 'SIGKILL');
    case 'kill media':
      return signal((await target.children('media')).slice(-1), 'SIGKILL');
    case 'stop': {
      const stopped = await target.children();
      signal(stopped, 'SIGSTOP');
      await sleep(forMs);
      return signal(stopped, 'SIGCONT');
    }
    case 'fill disk':
      return fillDisk(machine.base, forMs);
    case 'cut hub': {
      const restore = (['api', 'resolve', 'content'] as const).map((on) =>
        hub.fail({
          on,
          times: Number.POSITIVE_INFINITY,
          fault: { kind: 'custom', answer: (request) => void request.destroy() },
        }),
      );
      // Of `content` the first bytes still come.
      await sleep(forMs);
      for (const one of restore) one();
      return;
    }
    case 'clock':
      for (const offset of ['+3600', '-86400', '+0']) {
        writeFileSync(join(machine.base, 'clock'), offset);
        await sleep(forMs / 3);
      }
      return;
    case 'memory':
      return takeMemory(forMs);
  }
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended in the meantime.
    }
  }
}

async function fillDisk(base: string, forMs: number): Promise<void> {
  const filler = join(base, 'filler');
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const free = statfsSync(base);
    await appendFile(filler, Buffer.alloc(Math.min(16 * MIB, free.bavail * free.bsize) || 1)).catch(() => undefined);
    if (free.bavail === 0) await sleep(PIECE_MS);
  }
  if (existsSync(filler)) rmSync(filler);
}

/** Takes memory in a process of its own, at most a quarter of what is free. */
async function takeMemory(forMs: number): Promise<void> {
  const mib = Math.min(MEMORY_MIB, Math.floor(freemem() / 4 / MIB));
  const program = `const b = []; for (let i = 0; i < ${mib}; i++) b.push(Buffer.alloc(${MIB}, 1)); setTimeout(() => b, ${forMs})`;
  const child = spawn(process.execPath, ['-e', program], { stdio: 'ignore' });
  await sleep(forMs);
  child.kill('SIGKILL');
}

/** Returns the faults of a plan that this machine can have. */
export function possibleFaults({ faults }: Plan, { missing }: Machine): Plan['faults'] {
  return faults.filter(({ fault }) => missing[fault] === undefined);
}
