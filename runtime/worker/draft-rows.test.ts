import { expect, test } from 'vitest';
import { draftRows } from './draft-rows.ts';

test.each([
  ['CPU', 'int8', 'AVX-512 VNNI', 16],
  ['CPU', 'int8', 'AVX2', 0],
  ['CPU', 'int4', 'AVX-512 VNNI', 0],
  ['CPU', 'float', 'AVX-512 VNNI', 0],
  ['NPU', 'int8', 'AVX-512 VNNI', 0],
] as const)('on %s in %s with %s: %i rows', (device, form, kernels, rows) => {
  expect(draftRows({ device, form }, kernels)).toBe(rows);
});
