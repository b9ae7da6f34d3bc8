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
