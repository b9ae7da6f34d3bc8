import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

/**
 * Instruction sets for which onnxruntime has 8-bit kernels, fastest first, each with the flag that Linux shows for it.
 */
const FAMILIES: readonly (readonly [flag: string, family: string])[] = [
  ['amx_int8', 'AMX'],
  ['avx512_vnni', 'AVX-512 VNNI'],
  ['avx_vnni', 'AVX-VNNI'],
  ['avx512bw', 'AVX-512'],
  ['avx2', 'AVX2'],
  ['sse4_1', 'SSE4.1'],
  ['i8mm', 'NEON i8mm'],
  ['asimddp', 'NEON dot product'],
  ['asimd', 'NEON'],
];

/** Instruction sets that macOS can report: their Linux flags and the names of the macOS settings (`sysctl`). */
const MAC_FEATURES = [
  ['i8mm', 'hw.optional.arm.FEAT_I8MM'],
  ['asimddp', 'hw.optional.arm.FEAT_DotProd'],
] as const;

/**
 * Returns the family of onnxruntime's kernels on this CPU, such as `AVX2`; `x64` or `arm64` on systems that do not list
 * CPU flags (Windows). Users see this name. On a CPU of another family, a model is measured and compiled again.
 */
export function kernelFamily(): string {
  return familyOf(cpuFlags()) ?? process.arch;
}

/** Returns the fastest kernel family that these CPU flags allow; undefined if none of them is known. */
export function familyOf(flags: readonly string[]): string | undefined {
  return FAMILIES.find(([flag]) => flags.includes(flag))?.[1];
}

/** Describes in which blocks the kernels of a CPU compute; what is left after them is added in another order. */
export interface KernelBlocks {
  /** Number of rows with weights in blocks of 4 bits. */
  fourBitRows: 2 | 4;
  /** Number of cells over which attention adds values. */
  cells: 1 | 4;
}

/**
 * The blocks of each kernel family on which answers were measured to be the same in every bit alone and in company.
 * Four rows are those of core/mlas/lib/sqnbitgemm_kernel_neon_int8.cpp of onnxruntime; the products of floats for SSE
 * and NEON add four cells at a time.
 */
export const KERNEL_BLOCKS: ReadonlyMap<string, KernelBlocks> = new Map<string, KernelBlocks>([
  ['AMX', { fourBitRows: 2, cells: 1 }],
  ['AVX-512 VNNI', { fourBitRows: 2, cells: 1 }],
  ['AVX-512', { fourBitRows: 2, cells: 1 }],
  ['AVX2', { fourBitRows: 2, cells: 1 }],
  ['SSE4.1', { fourBitRows: 2, cells: 4 }],
  ['NEON', { fourBitRows: 2, cells: 4 }],
  ['NEON dot product', { fourBitRows: 4, cells: 4 }],
  ['NEON i8mm', { fourBitRows: 4, cells: 4 }],
]);

/** Returns the blocks of the kernels of this CPU; those of most families if they were never measured. */
export function kernelBlocks(): KernelBlocks {
  return KERNEL_BLOCKS.get(kernelFamily()) ?? { fourBitRows: 2, cells: 1 };
}

/**
 * Returns the most threads with which onnxruntime runs a model here: it counts the machine's cores, also where this
 * process may use only some of them.
 */
export function machineThreads(): number {
  return Math.max(cpus().length, availableParallelism());
}

function cpuFlags(): string[] {
  try {
    if (process.platform === 'linux') {
      return (
        /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(/\s+/) ?? []
      );
    }
    if (process.platform === 'darwin')
      return ['asimd', ...MAC_FEATURES.filter(([, name]) => isOn(name)).map(([flag]) => flag)];
  } catch {
    // The family stays unknown; precisions are measured in any case.
  }
  return [];
}

function isOn(name: string): boolean {
  return execFileSync('/usr/sbin/sysctl', ['-in', name], { encoding: 'utf8' }).trim() === '1';
}
