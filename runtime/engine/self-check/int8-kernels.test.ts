import { expect, test } from 'vitest';
import { sessionOptions } from '../model.ts';
import { largestProductsAreExact } from './int8-kernels.ts';

test('8-bit products of the largest numbers are exact on the CPU at hand', async () => {
  expect(await largestProductsAreExact(await sessionOptions(1))).toBe(true);
});
