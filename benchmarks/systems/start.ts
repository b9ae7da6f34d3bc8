import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ENGINE_MEMORY } from '../../runtime/supervisor/children/engine-child.ts';
import type { Call, Reply, Settings, System } from './system.ts';

/**
 * Maps each program to the URL of its module. The modules of `peers/` need the packages of `benchmarks/package.json`.
 */
export const PROGRAMS = {
  assay: new URL('engine.ts', import.meta.url).href,
  'node-llama-cpp': new URL('../peers/llama.ts', import.meta.url).href,
  'transformers.js': new URL('../peers/transformers.ts', import.meta.url).href,
} as const;

export type Program = keyof typeof PROGRAMS;

export interface RunningSystem extends Required<System> {
  close(): void;
}

/** Number of threads of every system: one for each logical processor, at most 8. */
export const THREADS = Number(process.env.ASSAY_BENCHMARK_THREADS ?? Math.min(8, Math.max(1, cpus().length)));

/**
 * Starts a system in a process of its own. Rejects with the system's error message if it does not start. Each method of
 * the returned system rejects in the same way if it fails.
 */
export async function startSystem(
  program: Program,
  settings: Settings,
  environment: Record<string, string> = {},
): Promise<RunningSystem> {
  const child = fork(
    fileURLToPath(new URL('child.ts', import.meta.url)),
    [PROGRAMS[program], JSON.stringify(settings)],
    {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // The server starts its engine process with the same settings.
      env: { ...(program === 'assay' ? ENGINE_MEMORY : {}), ...process.env, ...environment },
    },
  );
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`${program} ended (${signal ?? code})`);
  });
  ended.catch(() => {});
  const reply = async (): Promise<unknown> => {
    const [said] = (await Promise.race([once(child, 'message'), ended])) as [Reply];
    if ('error' in said) throw new Error(`${program}: ${said.error}`);
    return said.result;
  };
  const call = (...message: Call): Promise<never> => {
    const result = reply();
    child.send(message);
    return result as Promise<never>;
  };
  await reply();
  return {
    branches: (work) => call('branches', work),
    choices: (work) => call('choices', work),
    prefill: (work) => call('prefill', work),
    decode: (work) => call('decode', work),
    crowd: (work) => call('crowd', work),
    gaps: (work) => call('gaps', work),
    close: () => {
      if (child.connected) child.disconnect();
    },
  };
}
