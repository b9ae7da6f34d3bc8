import { expect, test } from 'vitest';
import { dependenceOf, draftRows, promptLengthFor } from './load-model.ts';

const GIB = 2 ** 30;
/** The KV of Qwen3-0.6B: 229,376 bytes for each token. */
const QWEN = { layers: Array.from({ length: 28 }, () => ({ heads: 8, headSize: 128 })) };
/** The KV of a model with a state in place of most layers. */
const HYBRID = { layers: [{ heads: 2, headSize: 64 }], states: [1000] };

test.each([
  ['as long as it was compiled for', 64 * GIB, QWEN, 32_768, 32_768],
  ['a quarter of the memory holds 19,173 tokens', 16 * GIB + 2 ** 28, QWEN, 32_768, 16_384],
  ['a quarter of the memory holds 9,362 tokens', 8 * GIB, QWEN, 32_768, 8192],
  ['no less than 4,096 tokens', GIB, QWEN, 32_768, 4096],
  ['no more than it was compiled for', GIB, QWEN, 512, 512],
  ['a length that is no power of two', 16 * GIB, QWEN, 10_000, 10_000],
  ['a length that is no power of two and does not fit', 8 * GIB, QWEN, 10_000, 8192],
  ['a model with states', GIB, HYBRID, 32_768, 32_768],
])('the default prompt length: %s', (_, memory, kv, most, length) => {
  expect(promptLengthFor(memory, kv, most)).toBe(length);
});

test.each([
  ['CPU', 'int8', 'AVX-512 VNNI', 16],
  ['CPU', 'int8', 'AVX2', 0],
  ['CPU', 'int4', 'AVX-512 VNNI', 0],
  ['CPU', 'float', 'AVX-512 VNNI', 0],
  ['NPU', 'int8', 'AVX-512 VNNI', 0],
] as const)('on %s in %s with %s: %i rows', (device, precision, kernels, rows) => {
  expect(draftRows({ device, precision }, kernels)).toBe(rows);
});

test.each([
  [{}, true, 'AMX', null],
  [{}, true, 'NEON i8mm', null],
  [{}, true, 'AVX-VNNI', 'kernels of this CPU'],
  [{}, false, 'AMX', 'other bits in company'],
  [{ branchMasks: undefined }, false, 'AMX', 'sinks'],
  [{ experts: true }, true, 'AMX', 'an expert of the model'],
  [{ device: 'NPU', path: 'static' }, false, 'AMX', 'this NPU'],
] as const)(
  '%o, equal alone: %s, with the kernels of %s: why answers may depend on others',
  (facts, equal, kernels, reason) => {
    const manifest = { device: 'CPU', path: 'packed', branchMasks: [], ...facts } as const;
    const dependence = dependenceOf(manifest as Parameters<typeof dependenceOf>[0], equal, kernels);
    if (reason === null) expect(dependence).toBeNull();
    else expect(dependence).toContain(reason);
  },
);
