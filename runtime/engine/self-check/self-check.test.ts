import { expect, test } from 'vitest';
import { TOY_KV, ToyForward } from '../../../tests/oracle/toy-forward.ts';
import type { SequenceRun } from '../forward/forward.ts';
import { sessionOptions } from '../model.ts';
import { checkPacking, largestProductsAreExact, valuesAreIndependent } from './self-check.ts';

test('accepts a device that applies the tree mask', async () => {
  await expect(checkPacking(new ToyForward(), TOY_KV)).resolves.toBeUndefined();
});

test('refuses a device that lets branches see each other', async () => {
  class Mixing extends ToyForward {
    override run(batch: readonly SequenceRun[]): Promise<Float32Array> {
      for (const { sequence, start } of batch) {
        for (let cell = start; cell < sequence.length; cell++) sequence.parents[cell] = cell - 1;
      }
      return super.run(batch);
    }
  }
  await expect(checkPacking(new Mixing(), TOY_KV)).rejects.toMatchObject({ code: 'engine_failed' });
});

test('refuses a device that returns no numbers', async () => {
  class Broken extends ToyForward {
    override async run(): Promise<Float32Array> {
      return new Float32Array(this.vocabSize).fill(Number.NaN);
    }
  }
  await expect(checkPacking(new Broken(), TOY_KV)).rejects.toMatchObject({ code: 'engine_failed' });
});

test('8-bit products of the largest numbers are exact on the CPU at hand', async () => {
  expect(await largestProductsAreExact(await sessionOptions(1))).toBe(true);
});

test.each([
  [1, 1, 64, true],
  [4, 1, 64, false],
  [4, 4, 64, true],
  // Also divided among two threads, these values have too many columns to be added in larger pieces.
  [2, 1, 256, true],
  [4, 2, 128, false],
])(
  '%i threads, %i key heads of %i elements: values are added in one order: %s',
  async (threads, heads, headSize, one) => {
    const options = await sessionOptions(threads);
    const shape = { layers: [{ heads, headSize }] };
    expect(await valuesAreIndependent(options, shape)).toBe(one);
    // Multiplied in columns, they are in all cases.
    expect(await valuesAreIndependent(options, shape, heads + 1)).toBe(true);
  },
);
