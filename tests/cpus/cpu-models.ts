import type { Precision } from '../../lib/schema/precision.ts';

/** A CPU that qemu's user mode emulates. */
export interface CpuModel {
  /** qemu's name (`qemu-x86_64 -cpu help`). */
  cpu: string;
  arch: 'x64' | 'arm64';
  /** Kernels that onnxruntime uses on it (`core/mlas/lib/platform.cpp`). */
  kernels: string;
  /** True if those clamp sums of 8-bit products. */
  saturates: boolean;
  /** The only precision to check. Default: all. */
  only?: Precision;
  /**
   * The features that Linux would list in /proc/cpuinfo, where qemu shows the host's; on Arm, onnxruntime reads that
   * file.
   */
  features: string;
}

/** One CPU for each family of kernels. qemu emulates neither AVX-512 nor VNNI: those run where a machine has them. */
export const CPU_MODELS: readonly CpuModel[] = [
  {
    cpu: 'Haswell',
    arch: 'x64',
    kernels: 'AVX2',
    saturates: true,
    features: 'sse4_1 sse4_2 avx fma avx2',
  },
  { cpu: 'Nehalem', arch: 'x64', kernels: 'SSE4.1', saturates: false, features: 'sse4_1 sse4_2' },
  {
    cpu: 'cortex-a57',
    arch: 'arm64',
    kernels: 'NEON',
    saturates: false,
    features: 'fp asimd aes crc32',
  },
  {
    cpu: 'neoverse-n1',
    arch: 'arm64',
    kernels: 'NEON dot product',
    saturates: false,
    features: 'fp asimd aes crc32 atomics fphp asimdhp asimddp',
  },
  {
    cpu: 'max,sme=off',
    arch: 'arm64',
    kernels: 'NEON i8mm',
    saturates: false,
    features: 'fp asimd aes crc32 atomics fphp asimdhp asimddp sve i8mm bf16',
  },
  {
    cpu: 'max',
    arch: 'arm64',
    kernels: 'SME',
    saturates: false,
    only: 'float',
    // onnxruntime asks the CPU itself for SME.
    features: 'fp asimd aes crc32 atomics fphp asimdhp asimddp sve i8mm bf16',
  },
];
