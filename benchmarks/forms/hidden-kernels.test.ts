import { expect, test } from 'vitest';
import { findTests } from './hidden-kernels.ts';

const AVX512 = '41f7c200000100';
const VNNI = '4181e300080000';
const zeros = (count: number) => '00'.repeat(count);

test.each<[string, string, { avx512: number; vnni: number } | 'none']>([
  ['one after the other', zeros(3) + AVX512 + zeros(100) + VNNI, { avx512: 3, vnni: 110 }],
  ['others elsewhere', VNNI + AVX512 + zeros(2000) + AVX512 + zeros(10) + VNNI, { avx512: 2014, vnni: 2031 }],
  ['far apart', AVX512 + zeros(2000) + VNNI, 'none'],
  ['twice', (AVX512 + zeros(10) + VNNI + zeros(2000)).repeat(2), 'none'],
  ['not at all', zeros(10), 'none'],
])('tests of CPU features: %s', (_, hex, found) => {
  const library = Buffer.from(hex, 'hex');
  if (found === 'none') expect(() => findTests(library)).toThrow('onnxruntime 1.30.0');
  else expect(findTests(library)).toEqual(found);
});
