import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

/**
 * Runs a program in the folder `cwd`. Throws if it fails. Its standard error is printed; its standard output is printed
 * or ignored.
 */
export async function run(
  cwd: string,
  command: readonly string[],
  env: Record<string, string> = {},
  output: 'inherit' | 'ignore' = 'inherit',
): Promise<void> {
  const [program, ...args] = command;
  const child = spawn(program!, args, {
    cwd,
    stdio: ['ignore', output, 'inherit'],
    env: { ...process.env, ...env },
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}.`);
}

/** Returns the standard output of a program; null if it fails or is not installed. */
export function saysOf(program: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
