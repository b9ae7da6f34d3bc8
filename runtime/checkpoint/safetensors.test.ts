import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFloats } from '../onnx/format/tensor-data.ts';
import { INDEX_FILE, readCheckpoint, SINGLE_FILE } from './safetensors.ts';
import { floatTensor } from './weight-source.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-safetensors-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a safetensors file: the length of the header, the header, then the data. */
function write(name: string, header: string, data: Uint8Array, length = Buffer.byteLength(header)): void {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(length));
  writeFileSync(join(folder, name), Buffer.concat([size, Buffer.from(header), data]));
}

const tensor = (dtype: string, shape: number[], from: number, to: number) => ({
  dtype,
  shape,
  data_offsets: [from, to],
});
const SIX = { a: tensor('F32', [2], 0, 8), b: tensor('BF16', [1, 2], 8, 12), c: tensor('F16', [2], 12, 16) };
const DATA = new Uint8Array(
  Buffer.concat([
    Buffer.from(Float32Array.of(1.5, -2).buffer),
    Buffer.from(Uint16Array.of(0x3f80, 0xc000).buffer),
    Buffer.from(Uint16Array.of(0x3c00, 0xb800).buffer),
  ]),
);

test('floats of 32 and 16 bits are read from where they are', () => {
  write(SINGLE_FILE, JSON.stringify({ __metadata__: { format: 'pt' }, ...SIX }), DATA);
  const weights = readCheckpoint(folder);
  expect([...weights.values()].map(({ name, dtype, dims }) => [name, dtype, dims])).toEqual([
    ['a', 'F32', [2]],
    ['b', 'BF16', [1, 2]],
    ['c', 'F16', [2]],
  ]);
  expect([...weights.values()].map((one) => [...readFloats(floatTensor(one))])).toEqual([
    [1.5, -2],
    [1, -2],
    [1, -0.5],
  ]);
});

test('the shards of an index are one checkpoint, each tensor from the shard that the index names', () => {
  rmSync(join(folder, SINGLE_FILE), { force: true });
  write('model-00001-of-00002.safetensors', JSON.stringify({ a: SIX.a }), DATA.subarray(0, 8));
  write('model-00002-of-00002.safetensors', JSON.stringify({ a: SIX.a, b: SIX.b }), DATA.subarray(0, 12));
  const weight_map = { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' };
  writeFileSync(join(folder, INDEX_FILE), JSON.stringify({ metadata: { total_size: 12 }, weight_map }));
  const files = [...readCheckpoint(folder).values()].map(({ name, data }) => [name, 'file' in data && data.file]);
  expect(files).toEqual([
    ['a', join(folder, weight_map.a)],
    ['b', join(folder, weight_map.b)],
  ]);
});

test.each<[string, object | string, RegExp]>([
  ['a shard outside the folder', { weight_map: { a: '../a.safetensors' } }, /not a safetensors file/],
  ['a shard of another kind', { weight_map: { a: 'a.bin' } }, /not a safetensors file/],
  ['a shard that is missing', { weight_map: { a: 'b.safetensors' } }, /is missing/],
  ['a tensor that its shard lacks', { weight_map: { z: 'model-00001-of-00002.safetensors' } }, /lacks the weight "z"/],
  ['no map', {}, /no weight_map/],
  ['no JSON', 'x', /is damaged/],
])('an index with %s is refused', (_, index, message) => {
  rmSync(join(folder, SINGLE_FILE), { force: true });
  writeFileSync(join(folder, INDEX_FILE), typeof index === 'string' ? index : JSON.stringify(index));
  expect(() => readCheckpoint(folder)).toThrow(message);
});

test.each<[string, unknown, RegExp]>([
  ['a tensor beyond the end', { a: tensor('F32', [8], 0, 32) }, /do not end where/],
  ['bytes that no tensor has', { a: tensor('F32', [2], 0, 8) }, /do not end where/],
  ['a hole', { a: tensor('F32', [2], 0, 8), b: tensor('F32', [1], 12, 16) }, /overlap or leave holes/],
  ['tensors that overlap', { a: tensor('F32', [3], 0, 12), b: tensor('F32', [2], 8, 16) }, /overlap or leave holes/],
  ['an end before the beginning', { a: tensor('F32', [0], 8, 0) }, /another size/],
  ['a size that is not its shape', { a: tensor('F32', [3], 0, 16) }, /another size/],
  ['a product that overflows', { a: tensor('F32', [2 ** 40, 2 ** 40], 0, 16) }, /another size/],
  ['a negative dimension', { a: tensor('F32', [-1], 0, 16) }, /unknown way/],
  ['half an element', { a: tensor('F32', [1.5], 0, 16) }, /unknown way/],
  ['too many dimensions', { a: tensor('F32', Array(9).fill(1), 0, 16) }, /unknown way/],
  ['an unknown member', { a: { ...tensor('F32', [4], 0, 16), file: '/etc/passwd' } }, /unknown way/],
  ['nesting', { a: JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`) }, /nests too deep/],
  ['no object', 7, /is damaged/],
])('a header with %s is refused', (_, header, message) => {
  write(SINGLE_FILE, JSON.stringify(header), DATA);
  expect(() => readCheckpoint(folder)).toThrow(message);
});

test.each([
  ['longer than the file', 1000, /ends within its header/],
  ['longer than any header', 2 ** 40, /is too large/],
])('a header that says it is %s is refused', (_, length, message) => {
  write(SINGLE_FILE, '{}', DATA, length);
  expect(() => readCheckpoint(folder)).toThrow(message);
});

test('a type that is not of floats is refused by its name when a graph reads it', () => {
  write(SINGLE_FILE, JSON.stringify({ w: tensor('F8_E4M3', [4, 4], 0, 16) }), DATA);
  const [weight] = readCheckpoint(folder).values();
  expect(() => weight && floatTensor(weight)).toThrow(
    /"w" has the type F8_E4M3, and only F32, F16, BF16 and, of GGUF files, Q4_0/,
  );
});
