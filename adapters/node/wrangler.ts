import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import type { Wrangler } from './edge-keys.ts';

const run = promisify(execFile);

/** Runs the wrangler that is installed in the current folder, without sending metrics. */
export const wrangler: Wrangler = async (args) => {
  try {
    const { stdout } = await run('npx', ['--no-install', 'wrangler', ...args], {
      env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (cause) {
    // Wrangler writes colors even into a pipe.
    const said =
      cause instanceof Error && 'stderr' in cause ? stripVTControlCharacters(String(cause.stderr)).trim() : '';
    throw new Error(
      `wrangler failed. Run this in the folder with wrangler.toml, after npm install and npx wrangler login.\n${said}`,
      { cause },
    );
  }
};
