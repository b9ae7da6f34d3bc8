import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { floatTensor } from '../weight-source.ts';
import { ggufBytes, text, u32, u64 } from './gguf.fixture.ts';
import { readGguf } from './read-gguf.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-gguf-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function read(bytes: Uint8Array) {
  const file = join(folder, 'model.gguf');
  writeFileSync(file, bytes);
  return readGguf(file);
}

const F32 = 0;
const tensor = (over: object = {}) => ({ name: 'a', dims: [2], type: F32, bytes: new Uint8Array(8), ...over });

test('values and tensors are read, with the slowest dimension first', () => {
  const list = Buffer.concat([u32(9), u32(9), u64(2), u32(4), u64(1), u32(7), u32(4), u64(0)]);
  const { metadata, tensors } = read(
    ggufBytes(
      [
        ['a', { u32: 7 }],
        ['b', { u64: 2n ** 40n }],
        ['c', { f32: 0.5 }],
        ['d', { flag: true }],
        ['e', { text: 'ü' }],
        ['f', { texts: ['x', '', '\uFEFF', '\uFEFFx'] }],
        ['g', { raw: list }],
        ['h', { raw: Buffer.concat([u32(1), Uint8Array.of(255)]) }],
      ],
      [
        tensor({ dims: [2, 3], bytes: new Uint8Array(24) }),
        tensor({ name: 'b', type: 8, dims: [32, 1], bytes: new Uint8Array(34) }),
      ],
    ),
  );
  expect([...metadata.values()]).toEqual([7, 2 ** 40, 0.5, true, 'ü', ['x', '', '\uFEFF', '\uFEFFx'], [[7], []], -1]);
  expect([...tensors.values()].map(({ name, dtype, dims }) => [name, dtype, dims])).toEqual([
    ['a', 'F32', [3, 2]],
    ['b', 'Q8_0', [1, 32]],
  ]);
});

test('a type that is not read is refused by its name when a graph reads it', () => {
  const { tensors } = read(ggufBytes([], [tensor({ name: 'w', type: 19 })]));
  const [weight] = tensors.values();
  expect(() => weight && floatTensor(weight)).toThrow(
    /"w" has the type IQ1_S, .* Q4_0, .* Q4_K, .* are read. Use a copy/,
  );
});

const nested = Buffer.concat([u32(9), ...Array.from({ length: 5 }, () => [u32(9), u64(1)]).flat()]);
const list = (type: number, count: bigint) => ({ raw: Buffer.concat([u32(9), u32(type), u64(count)]) });

test.each<[string, Uint8Array, RegExp]>([
  ['no bytes', new Uint8Array(0), /not a GGUF file/],
  ['another format', ggufBytes([], [], { magic: 'GGML' }), /not a GGUF file/],
  ['an old version', ggufBytes([], [], { version: 1 }), /version 1,/],
  ['the other order of bytes', ggufBytes([], [], { version: 0x0300_0000 }), /version 50331648,/],
  ['too many tensors', ggufBytes([], [], { count: 2n ** 40n }), /more than 65536 tensors/],
  ['a number of no exact value', ggufBytes([], [], { keys: 2n ** 63n }), /too large/],
  ['too many keys', ggufBytes([], [], { keys: 70_000 }), /more than 65536 keys/],
  ['fewer keys than it says', ggufBytes([], [], { keys: 1 }), /ends within its header|keys|too large/],
  [
    'a key twice',
    ggufBytes(
      [
        ['a', { u32: 1 }],
        ['a', { u32: 2 }],
      ],
      [],
    ),
    /key "a" twice/,
  ],
  ['a value of an unknown type', ggufBytes([['a', { raw: u32(13) }]], []), /unknown type 13/],
  ['a text longer than the file', ggufBytes([['a', { raw: Buffer.concat([u32(8), u64(1000)]) }]], []), /ends within/],
  ['a huge text', ggufBytes([['a', { raw: Buffer.concat([u32(8), u64(2n ** 50n)]) }]], []), /more than 4194304 bytes/],
  ['a huge list', ggufBytes([['a', list(0, 2n ** 50n)]], []), /more than 8388608 items/],
  ['a list longer than the file', ggufBytes([['a', list(0, 1_000_000n)]], []), /ends within/],
  ['lists in lists', ggufBytes([['a', { raw: nested }]], []), /nests too deep/],
  ['a part of a model', ggufBytes([['split.count', { u32: 3 }]], []), /one of 3 parts/],
  ['an alignment of 3', ggufBytes([['general.alignment', { u32: 3 }]], []), /power of two/],
  ['a huge alignment', ggufBytes([['general.alignment', { u32: 2 ** 30 }]], []), /power of two/],
  ['a tensor twice', ggufBytes([], [tensor(), tensor()]), /tensor "a" twice/],
  ['too many dimensions', ggufBytes([], [tensor({ dims: [1, 1, 1, 1, 1] })]), /more than 4 dimensions/],
  ['a size that overflows', ggufBytes([], [tensor({ dims: [2 ** 40, 2 ** 40] })]), /huge/],
  ['no elements', ggufBytes([], [tensor({ dims: [0] })]), /no size/],
  ['a tensor beyond the end', ggufBytes([], [tensor({ dims: [9] })]), /ends beyond/],
  ['an offset beyond the end', ggufBytes([], [tensor({ offset: 2n ** 50n })]), /ends beyond/],
  ['an offset that is not aligned', ggufBytes([], [tensor({ offset: 4 })]), /not aligned/],
  ['tensors that overlap', ggufBytes([], [tensor(), tensor({ name: 'b', offset: 0 })]), /overlap/],
  ['half a block', ggufBytes([], [tensor({ type: 8, dims: [16] })]), /not whole blocks of the type Q8_0/],
  ['a name that is too long', ggufBytes([], [tensor({ name: 'a'.repeat(2000) })]), /more than 1024 bytes/],
  ['a name that the file cuts', ggufBytes([], [], { count: 1 }).subarray(0, 24), /ends within/],
  ['bytes after no tensor', Buffer.concat([ggufBytes([], [], { count: 1 }), text('x')]), /ends within|too large|bytes/],
])('a file with %s is refused', (_, bytes, message) => {
  expect(() => read(bytes)).toThrow(message);
});
