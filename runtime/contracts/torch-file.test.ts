import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fixture } from '../../tests/fixture.ts';
import { readTorchFile, TorchTensor } from './torch-file.ts';

const file = readFileSync(fixture('decisions/kev-dense/head.pt'));
/** Returns the file with one text of its pickle replaced by another of the same length. */
function changed(from: string, to: string): Uint8Array {
  const at = file.indexOf(from, 0, 'latin1');
  if (at < 0 || from.length !== to.length) throw new Error('the text must be there, and keep its length');
  const copy = new Uint8Array(file);
  copy.set(Buffer.from(to, 'latin1'), at);
  return copy;
}

/** Returns a file with this pickle, and `floats` 32-bit floats in its storage `0`. */
function written(pickle: string, floats = 0): Uint8Array {
  const entries = [
    ['a/data.pkl', Buffer.from(pickle, 'latin1')],
    ['a/data/0', Buffer.alloc(4 * floats)],
  ] as const;
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, data] of entries) {
    const local = Buffer.alloc(30);
    local.writeUInt16LE(name.length, 26);
    const row = Buffer.alloc(46);
    row.writeUInt32LE(0x02014b50, 0);
    row.writeUInt32LE(data.length, 24);
    row.writeUInt16LE(name.length, 28);
    row.writeUInt32LE(offset, 42);
    parts.push(local, Buffer.from(name), data);
    central.push(row, Buffer.from(name));
    offset += 30 + name.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(offset, 16);
  return new Uint8Array(Buffer.concat([...parts, ...central, end]));
}

/** A list that has itself twice. */
const SELF = ']q\0(h\0h\0e';
/** A list of 26 levels, each of which has the one below twice. */
const DOUBLED = `]${Array.from({ length: 26 }, (_, i) => `q${String.fromCharCode(i)}](h${String.fromCharCode(i)}h${String.fromCharCode(i)}e`).join('')}`;
/** One tensor of a million floats. */
const TENSOR =
  'ctorch._utils\n_rebuild_tensor_v2\n((\x8c\x07storagectorch\nFloatStorage\n\x8c\x010\x8c\x03cpuK\0tQK\0J\x40\x42\x0f\0\x85K\x01\x85tR';

test('reads a tensor', () => {
  const tensor = readTorchFile(written(`${TENSOR}.`, 1_000_000));
  expect(tensor).toMatchObject({ dims: [1_000_000] });
});

test.each<[string, string, RegExp]>([
  ['a list that has itself', `${SELF}.`, /damaged|too many values/],
  ['few lists that make many values', `${DOUBLED}.`, /too many values/],
  ['a list as a name', `${DOUBLED}}h\x18Ns.`, /no text/],
  ['a name without an end', `c${'a'.repeat(100_000)}`, /damaged/],
  ['a long name', `c${'a'.repeat(1000)}\nb\n.`, /damaged/],
  ['many tensors of one storage', `](${TENSOR.repeat(20)}e.`, /too large together/],
])('refuses %s', (_, pickle, message) => {
  expect(() => readTorchFile(written(pickle, 1_000_000))).toThrow(message);
});

test('reads settings and tensors', () => {
  const read = readTorchFile(file) as Record<string, unknown>;
  expect(read).toMatchObject({
    base: 'Qwen/Qwen3-0.6B-Base',
    head_dim: 16,
    temperature: 2.406,
    option_isolation: false,
  });
  const weight = (read.head as Record<string, unknown>)['q.weight'] as TorchTensor;
  expect(weight).toBeInstanceOf(TorchTensor);
  expect(weight.dims).toEqual([16, 32]);
  expect(weight.values).toHaveLength(512);
  expect(weight.values.every((value) => Number.isFinite(value) && Math.abs(value) < 1)).toBe(true);
});

test.each<[string, Uint8Array, RegExp]>([
  [
    'another function',
    changed('torch._utils\n_rebuild_tensor_v2', 'posix.unsafe\nsystem_tensor_v___'),
    /asks for posix\.unsafe\.system/,
  ],
  ['another class', changed('collections\nOrderedDict', 'subprocess_\nPopen______'), /asks for subprocess_\./],
  ['another storage', changed('torch\nFloatStorage', 'torch\nQuintStorage'), /asks for torch\.QuintStorage/],
  ['an operation that is not understood', changed('\x89X\x12', 'iX\x12'), /operation 0x69/],
  ['half a file', file.subarray(0, 2000), /not a zip/],
  ['no zip file', new TextEncoder().encode('hello'.repeat(20)), /not a zip/],
])('refuses %s', (_, bytes, message) => {
  expect(() => readTorchFile(bytes)).toThrow(message);
});

test('never throws anything but its refusal, whatever byte changes', () => {
  for (let at = 0; at < file.length; at += 7) {
    const copy = new Uint8Array(file);
    copy[at] = (copy[at] ?? 0) ^ 0xff;
    try {
      readTorchFile(copy);
    } catch (error) {
      expect((error as Error).message).toMatch(/^its head\.pt cannot be read/);
    }
  }
});
