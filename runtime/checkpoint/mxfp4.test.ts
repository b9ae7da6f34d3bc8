import { expect, test } from 'vitest';
import { readFloats, readSomeFloats } from '../onnx/format/tensor-data.ts';
import { unpackMxfp4 } from './mxfp4.ts';
import { floatTensor, type StoredTensor } from './weight-source.ts';

const stored = (name: string, dims: number[], bytes: Uint8Array): [string, StoredTensor] => [
  name,
  { name, dtype: 'U8', dims, data: { bytes } },
];
/** Two experts of two outputs and 32 inputs: each byte has two levels, the first input in the low half. */
const LEVELS = Uint8Array.from({ length: 64 }, (_, at) => (at * 37) % 256);
const SCALES = Uint8Array.of(127, 128, 126, 0);

test('experts in MXFP4 become floats, with the outputs last', () => {
  const source = new Map([
    stored('experts.down_proj_blocks', [2, 2, 1, 16], LEVELS),
    stored('experts.down_proj_scales', [2, 2, 1], SCALES),
    stored('experts.down_proj_bias', [2, 2], new Uint8Array(4)),
  ]);
  const unpacked = unpackMxfp4(source);
  expect([...unpacked.keys()]).toEqual(['experts.down_proj_bias', 'experts.down_proj']);
  const matrix = unpacked.get('experts.down_proj');
  expect(matrix?.dims).toEqual([2, 32, 2]);
  // OCP Microscaling Formats (MX) 1.0, table 5: the values of E2M1 by their bits without the sign.
  const value = (level: number) => [0, 0.5, 1, 1.5, 2, 3, 4, 6][level & 7]! * (level & 8 ? -1 : 1);
  const wanted = Array.from({ length: 128 }, (_, at) => {
    const [expert, input, output] = [at >> 6, (at >> 1) & 31, at & 1];
    const byte = LEVELS[(expert * 2 + output) * 16 + (input >> 1)]!;
    return value(input % 2 === 0 ? byte & 15 : byte >> 4) * 2 ** (SCALES[expert * 2 + output]! - 127);
  });
  const tensor = floatTensor(matrix!);
  expect([...readFloats(tensor)].map((one) => one + 0)).toEqual(wanted.map((one) => Math.fround(one) + 0));
  expect([...readSomeFloats(tensor, 64, 64)]).toEqual([...readFloats(tensor).subarray(64)]);
});

test('scales of another size are refused', () => {
  const source = new Map([stored('a_blocks', [2, 2, 1, 16], LEVELS), stored('a_scales', [2, 2], SCALES)]);
  expect(() => unpackMxfp4(source)).toThrow(/"a_blocks" and "a_scales" do not fit/);
});
