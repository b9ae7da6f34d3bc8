import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const FOLDER = new URL('..', import.meta.url);

/** Installs the packages of `benchmarks/package.json` if they are missing (about 1 GB). Throws if that fails. */
export function installPeers(): void {
  if (existsSync(new URL('node_modules/node-llama-cpp/package.json', FOLDER))) return;
  console.error('Installing the programs that Assay is compared with (npm install in benchmarks/, about 1 GB) …');
  // Does not use `npm ci`, because the lockfile may lack the binaries for this platform.
  const { status } = spawnSync('npm', ['install', '--no-save'], {
    cwd: FOLDER,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('The peers were not installed. Run `npm install` in benchmarks/, then this again.');
}
