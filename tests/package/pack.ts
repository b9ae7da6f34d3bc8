import { execFile } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Packed } from '../../release/package-contents.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Lists what `npm run build` and `npm pack` read. */
const SOURCES = [
  ...['adapters', 'handlers', 'lib', 'runtime', 'docs', 'examples', 'models', 'openapi.json'],
  ...['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'clients/README.md'],
  ...['benchmarks/report.md', 'release/other-systems.js'],
  ...['tsconfig.base.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.pages.json'],
];

/** Has the environment of a user with the Node that runs the tests; npm keeps its registry and its cache. */
export const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };

export interface Ran {
  stdout: string;
  stderr: string;
}

/** Runs a command; throws with its output if it fails. */
export async function run(cwd: string, command: string, ...args: string[]): Promise<Ran> {
  return promisify(execFile)(command, args, { cwd, env, maxBuffer: 64 * 1024 * 1024 });
}

export const newFolder = (): Promise<string> => fs.mkdtemp(join(tmpdir(), 'assay-package-'));

/** Makes an empty project, with these files. */
export async function project(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await newFolder();
  await fs.writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  for (const [name, text] of Object.entries(files)) await fs.writeFile(join(folder, name), text);
  return folder;
}

/** Builds and packs a copy of this checkout: a build here would remove files under running tests. */
export async function pack(): Promise<{ tarball: string; packed: Packed }> {
  const copy = await newFolder();
  for (const name of SOURCES) await fs.cp(join(ROOT, name), join(copy, name), { recursive: true });
  await fs.symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await run(copy, 'npm', 'run', 'build');
  const { stdout } = await run(copy, 'npm', 'pack', '--ignore-scripts', '--json');
  const [packed] = JSON.parse(stdout) as [Packed];
  return { tarball: join(copy, packed.filename), packed };
}

/** Reads a file of this checkout. */
export const source = (path: string): Promise<string> => fs.readFile(join(ROOT, path), 'utf8');
