import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Programs that tests start most often. They are killed, so they never keep what Node compiled for them. */
const PROGRAMS = ['../runtime/worker/engine-child.ts', '../runtime/media/media-child.ts'];

/**
 * Gives all tests of a run one folder for their temporary files, and removes it when the run has ended. Compiled code
 * is among these files: with it, a process that tests start needs a third of the processor time.
 */
export default function setup(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'assay-tests-'));
  process.env.TMPDIR = folder;
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled-code');
  const urls = PROGRAMS.map((path) => new URL(path, import.meta.url).href);
  const compile = `await Promise.all(${JSON.stringify(urls)}.map((url) => import(url))); process.exit();`;
  const compiling = spawn(process.execPath, ['--input-type=module', '--eval', compile], { stdio: 'ignore' });
  const compiled = once(compiling, 'exit');
  return async () => {
    await compiled;
    // Killed processes may still be writing there.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  };
}
