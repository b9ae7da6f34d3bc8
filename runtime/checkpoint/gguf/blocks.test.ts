import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFloats } from '../../onnx/format/tensor-data.ts';
import { floatTensor, rowsOf } from '../weight-source.ts';
import { BLOCK_TYPES } from './blocks.ts';
import { readGguf } from './read-gguf.ts';

/** Another folder of `tests/fixtures/gguf/make.py`, with other blocks. */
const FOLDER = process.env.ASSAY_GGUF_TYPES ?? join(import.meta.dirname, '../../../tests/fixtures/gguf');

const bits = (floats: Float32Array) => Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength);

test('the floats of every type are those that gguf-py computes, bit for bit', () => {
  const { tensors } = readGguf(join(FOLDER, 'types.gguf'));
  const bytes = readFileSync(join(FOLDER, 'types.f32'));
  let at = 0;
  for (const [name, stored] of tensors) {
    const floats = bits(readFloats(floatTensor(stored)));
    expect(Buffer.compare(floats, bytes.subarray(at, at + floats.length)), name).toBe(0);
    at += floats.length;
  }
  expect(at).toBe(bytes.length);
  expect([...tensors.keys()].sort()).toEqual([...Object.keys(BLOCK_TYPES), 'F16', 'F32', 'BF16'].sort());
});

test('rows of blocks are taken as they are', () => {
  const stored = readGguf(join(FOLDER, 'types.gguf')).tensors.get('Q4_K');
  if (!stored) throw new Error('the fixture has Q4_K');
  const whole = readFloats(floatTensor(stored));
  const twice = readFloats(floatTensor(rowsOf(stored, [0, 0])));
  expect(bits(twice)).toEqual(Buffer.concat([bits(whole.subarray(0, 256)), bits(whole.subarray(0, 256))]));
});
