import { expect, test } from 'vitest';
import { Random } from '../random.ts';
import type { KvShape } from './kv-shape.ts';
import { Sequence } from './sequence.ts';

const LAYERS = [
  { heads: 3, headSize: 2 },
  { heads: 1, headSize: 4 },
];

/** Writes a number to each element of the last cell that no other element has. */
function write({ layers, capacity, length }: Sequence): void {
  for (const [index, { heads, headSize }] of LAYERS.entries())
    for (const [part, buffer] of [layers[index]!.key, layers[index]!.value].entries())
      for (let head = 0; head < heads; head++)
        for (let i = 0; i < headSize; i++)
          buffer[(head * capacity + length - 1) * headSize + i] = elementOf(length - 1, index, part, head, i);
}

const elementOf = (cell: number, layer: number, part: number, head: number, i: number) =>
  1 + (((cell * 2 + layer) * 2 + part) * 3 + head) * 4 + i;

function expectCells({ layers, capacity, length }: Sequence): void {
  for (const [index, { heads, headSize }] of LAYERS.entries())
    for (const [part, buffer] of [layers[index]!.key, layers[index]!.value].entries()) {
      expect(buffer.length).toBe(heads * capacity * headSize);
      for (let head = 0; head < heads; head++)
        for (let cell = 0; cell < length; cell++)
          for (let i = 0; i < headSize; i++)
            expect(buffer[(head * capacity + cell) * headSize + i]).toBe(elementOf(cell, index, part, head, i));
    }
}

test.each([
  ['32-bit floats', {}],
  ['16-bit floats', { half: true }],
] as [string, Partial<KvShape>][])('cells stay the same when the buffers get another length: %s', (_, shape) => {
  const random = new Random(7);
  const below = (count: number) => Math.floor(random.uniform() * count);
  const sequence = new Sequence({ layers: LAYERS, ...shape }, 4);
  for (let step = 0; step < 300; step++) {
    const kind = below(8);
    if (sequence.length < 60 && kind < 4) {
      if (sequence.length === sequence.capacity) sequence.resize(sequence.length + 1 + below(20));
      sequence.append(step, sequence.length - 1);
      write(sequence);
    } else if (kind === 5) sequence.truncate(below(sequence.length + 1));
    else if (kind === 6) sequence.resize(sequence.length, sequence.length + below(3));
    else sequence.resize(sequence.length + below(30));
    expectCells(sequence);
    sequence.checkIntegrity();
  }
});

test('buffers change their length in the memory that they have, up to their room', () => {
  const sequence = new Sequence({ layers: LAYERS }, 20);
  const memory = () => sequence.layers[0]!.key.buffer;
  const first = memory();
  for (const capacity of [5, 20, 1]) {
    sequence.resize(capacity);
    expect([sequence.capacity, sequence.room, memory()]).toEqual([capacity, 20, first]);
  }
  const { layers } = sequence;
  sequence.resize(1);
  expect(sequence.layers).toBe(layers);
  sequence.resize(21);
  expect([sequence.room, memory() === first]).toEqual([21, false]);
  sequence.resize(3, 3);
  expect([sequence.room, memory().byteLength]).toEqual([3, 3 * 20 * 4]);
});
