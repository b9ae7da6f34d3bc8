import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { at } from '../../lib/at.ts';
import { kernelFamily } from '../../runtime/compile/kernels.ts';

/** Describes a family of onnxruntime's CPU kernels, and the environment that makes a child process use it. */
export interface Kernels {
  family: string;
  /**
   * CPU feature that must be hidden from onnxruntime so that it uses this family; null if this machine uses it anyway.
   */
  hidden: string | null;
  env: Record<string, string>;
}

/**
 * Machine code with which onnxruntime tests the CPU's features: `test $0x10000,%r10d` (AVX-512), and soon after it `and
 * $0x800,%r11d` (VNNI).
 */
const AVX512_TEST = Buffer.from('41f7c200000100', 'hex');
const VNNI_TEST = Buffer.from('4181e300080000', 'hex');
/** Most bytes between the two tests. */
const APART = 1024;
/** Number of bytes at the end of each test that hold the tested bits. */
const OPERAND_BYTES = 4;

/**
 * Returns the families of kernels that this machine can run, its own first. onnxruntime has no setting for the family.
 * So a copy of its library is put in front of its own (`LD_LIBRARY_PATH`) in which the tests for AVX-512 or VNNI always
 * fail: it uses the kernels that a CPU without them would get, at the speed of this CPU. Throws if the tests are not
 * found in the library, as may happen in another version of onnxruntime.
 */
export function availableKernels(): Kernels[] {
  const family = kernelFamily();
  const own: Kernels = { family, hidden: null, env: {} };
  if (process.platform !== 'linux' || process.arch !== 'x64') return [own];
  const avx2: Kernels = { family: 'AVX2', hidden: 'AVX-512', env: patchedLibrary('avx2', AVX512_TEST) };
  if (family === 'AVX-512') return [own, avx2];
  // A machine with AMX would need another test to fail, which comes first.
  if (family !== 'AVX-512 VNNI') return [own];
  return [own, { family: 'AVX-512', hidden: 'VNNI', env: patchedLibrary('avx512', VNNI_TEST) }, avx2];
}

function patchedLibrary(name: string, test: Buffer): Kernels['env'] {
  const root = dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
  const library = readFileSync(join(root, 'bin/napi-v6/linux/x64/libonnxruntime.so.1'));
  const { avx512, vnni } = findTests(library);
  const at = test === AVX512_TEST ? avx512 : vnni;
  library.fill(0, at + test.length - OPERAND_BYTES, at + test.length);
  const folder = join(tmpdir(), `assay-benchmark-onnxruntime-${name}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'libonnxruntime.so.1'), library);
  return { LD_LIBRARY_PATH: folder };
}

/**
 * Returns the offsets of the two tests: the only place where one closely follows the other. Throws if there is no such
 * place, or more than one.
 */
export function findTests(library: Buffer): { avx512: number; vnni: number } {
  const found: { avx512: number; vnni: number }[] = [];
  for (let avx512 = library.indexOf(AVX512_TEST); avx512 >= 0; avx512 = library.indexOf(AVX512_TEST, avx512 + 1)) {
    const vnni = library.indexOf(VNNI_TEST, avx512);
    if (vnni >= 0 && vnni - avx512 < APART) found.push({ avx512, vnni });
  }
  if (found.length !== 1) {
    throw new Error(
      'The tests of CPU features are not where onnxruntime 1.30.0 has them; look for them anew (objdump, MLAS_PLATFORM).',
    );
  }
  return at(found, 0);
}
