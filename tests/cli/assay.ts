import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The program, as `node` starts it. */
export const BIN = fileURLToPath(new URL('../../adapters/node/bin.ts', import.meta.url));

export interface Ran {
  code: number;
  out: string;
  err: string;
}

/**
 * Runs the command line as a user does: in a process of its own, its input a pipe, with nothing of this environment but
 * PATH.
 */
export function assay(
  args: readonly string[],
  options: { input?: string | Buffer; env?: Record<string, string>; cwd?: string; timeoutMs?: number } = {},
): Promise<Ran> {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...options.env };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [BIN, ...args],
      { env, cwd: options.cwd, timeout: options.timeoutMs ?? 60_000 },
      (error, out, err) => {
        resolve({ code: error ? Number(error.code ?? 255) : 0, out, err });
      },
    );
    child.stdin?.end(options.input ?? '');
  });
}

export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'assay-cli-'));
