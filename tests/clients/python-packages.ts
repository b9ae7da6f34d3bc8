import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Installs packages from PyPI in a folder of their own, which later calls use again, and returns the folder of their
 * programs. Returns null, and says why, on a machine without Python, pip or a registry.
 *
 * @param packages names with exact versions, the main one first: `jevcompat==0.1.1`
 */
export async function pythonPackages(...packages: readonly string[]): Promise<string | null> {
  const folder = join(tmpdir(), `assay-python-${packages.join('-').replaceAll(/[^\w.-]+/g, '-')}`);
  const bin = join(folder, 'bin');
  if (existsSync(bin)) return bin;
  const made = await mkdtemp(`${folder}-`);
  try {
    await run('python3', ['-m', 'venv', made]);
    // `python -m pip` works after the folder is renamed; programs are started as modules for the same reason.
    await run(join(made, 'bin/python'), ['-m', 'pip', 'install', '-q', '--no-compile', ...packages]);
    await rename(made, folder);
    return bin;
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    if (existsSync(bin)) return bin;
    console.warn(`NO ${packages[0]}: Python 3 with venv and pip could not install it (${String(error).slice(0, 300)})`);
    return null;
  }
}
