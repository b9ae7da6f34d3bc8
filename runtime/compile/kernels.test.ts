import { expect, test } from 'vitest';
import { familyOf, kernelFamily } from './kernels.ts';

test.each<[string, string | undefined]>([
  ['fpu sse4_1 sse4_2 avx avx2', 'AVX2'],
  ['avx2 avx512f avx512bw', 'AVX-512'],
  ['avx2 avx_vnni', 'AVX-VNNI'],
  ['avx2 avx512bw avx512_vnni', 'AVX-512 VNNI'],
  ['avx2 avx512bw avx512_vnni amx_tile amx_int8', 'AMX'],
  ['fp asimd aes', 'NEON'],
  ['fp asimd asimddp', 'NEON dot product'],
  ['fp asimd asimddp i8mm', 'NEON i8mm'],
  ['', undefined],
])('%s: %s', (flags, family) => {
  expect(familyOf(flags.split(' '))).toBe(family);
});

test('the machine at hand has a family', () => {
  expect(kernelFamily()).not.toBe('');
});
