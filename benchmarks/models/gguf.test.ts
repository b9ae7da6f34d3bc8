import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tensorBytes, writeGguf } from './gguf.ts';

test.each([
  ['f32', [3, 5], 60],
  ['q8_0', [64, 2], 136],
  ['q4_0', [64, 2], 72],
] as const)('a tensor of %s and %j has %i bytes', (type, dims, bytes) => {
  expect(tensorBytes({ type, dims })).toBe(bytes);
});

test('tensors stand where the header says, on multiples of 32', () => {
  const folder = mkdtempSync(join(tmpdir(), 'assay-gguf-'));
  try {
    const file = join(folder, 'model.gguf');
    const one = { name: 'one', type: 'f32', dims: [3], pieces: () => [new Uint8Array(12).fill(1)] } as const;
    const two = { name: 'two', type: 'q8_0', dims: [32], pieces: () => [new Uint8Array(34).fill(2)] } as const;
    writeGguf(file, { key: { type: 'string', value: 'value' } }, [one, two]);
    const bytes = readFileSync(file);
    expect(bytes.toString('latin1', 0, 4)).toBe('GGUF');
    expect([bytes.readUInt32LE(4), bytes.readBigUInt64LE(8), bytes.readBigUInt64LE(16)]).toEqual([3, 2n, 1n]);
    const data = bytes.length - 96;
    expect(data % 32).toBe(0);
    expect([...bytes.subarray(data, data + 12)]).toEqual(Array(12).fill(1));
    expect([...bytes.subarray(data + 32, data + 32 + 34)]).toEqual(Array(34).fill(2));
    // The table entry of the tensor `two` ends with the offset of its data, 8 bytes.
    expect(bytes.readBigUInt64LE(bytes.indexOf('two') + 3 + 4 + 8 + 4)).toBe(32n);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a tensor that is not as long as it says is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'assay-gguf-'));
  try {
    const short = { name: 'short', type: 'f32', dims: [3], pieces: () => [new Uint8Array(8)] } as const;
    expect(() => writeGguf(join(folder, 'model.gguf'), {}, [short])).toThrow(/short/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
