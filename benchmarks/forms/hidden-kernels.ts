import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { at } from '../../lib/at.ts';
import { kernelFamily } from '../../runtime/compile/kernels.ts';

/** Describes a family of onnxruntime's CPU kernels, and the environment in which a child process uses it. */
export interface Kernels {
  family: string;
  /** CPU feature that is hidden from onnxruntime to make it use this family; null if it uses the family anyway. */
  hidden: string | null;
  env: Record<string, string>;
}

/** Machine code with which onnxruntime tests whether the CPU has AVX-512: `test $0x10000,%r10d`. */
const AVX512_TEST = Buffer.from('41f7c200000100', 'hex');
/** Machine code, a little further on, that tests whether the CPU has VNNI: `and $0x800,%r11d`. */
const VNNI_TEST = Buffer.from('4181e300080000', 'hex');
/** Largest distance between the two tests, in bytes. */
const APART = 1024;
/** Length of the bit mask at the end of each test, in bytes. */
const OPERAND_BYTES = 4;

/**
 * Returns the families of kernels that this machine can run, its own family first. onnxruntime has no setting for the
 * family. Therefore `LD_LIBRARY_PATH` selects a patched copy of its library in which the test for AVX-512 or VNNI
 * always fails. The copy uses the kernels for a CPU without that feature, at the speed of this CPU. Throws if the
 * library does not contain the tests, which may happen with another version of onnxruntime.
 */
export function availableKernels(): Kernels[] {
  const family = kernelFamily();
  const own: Kernels = { family, hidden: null, env: {} };
  if (process.platform !== 'linux' || process.arch !== 'x64') return [own];
  const avx2: Kernels = { family: 'AVX2', hidden: 'AVX-512', env: patchedLibrary('avx2', AVX512_TEST) };
  if (family === 'AVX-512') return [own, avx2];
  // On a machine with AMX, an earlier test would have to be patched, too.
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
 * Returns the offsets of the two tests in the library. Throws unless there is exactly one place where the VNNI test
 * closely follows the AVX-512 test.
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
