import { expect, test } from 'vitest';
import { BodyBytes } from './body-bytes.ts';

const KIB = 1024;

test.each([
  { sizes: [] },
  { sizes: [0] },
  { sizes: [3] },
  { sizes: [20 * KIB] },
  { sizes: [1, 1, 1] },
  { sizes: [8 * KIB - 1, 8 * KIB, 8 * KIB - 1, 1] },
  { sizes: [5, 20 * KIB, 0, 7, 9 * KIB, 3] },
  { sizes: Array.from({ length: 50 }, () => 1000) },
])('joins chunks of $sizes bytes in order', ({ sizes }) => {
  const bytes = new BodyBytes();
  const chunks = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
  for (const chunk of chunks) bytes.push(chunk);
  expect(Buffer.compare(bytes.joined(), Buffer.concat(chunks))).toBe(0);
});

test('holds the bytes of short chunks, not the chunks', () => {
  const bytes = new BodyBytes();
  const chunk = new Uint8Array(1);
  for (let i = 0; i < 40 * KIB; i++) bytes.push(chunk.fill(i % 256));
  expect(bytes.joined()).toEqual(Uint8Array.from({ length: 40 * KIB }, (_, i) => i % 256));
});

test('holds nothing after clear', () => {
  const bytes = new BodyBytes();
  bytes.push(new Uint8Array(9 * KIB));
  bytes.push(new Uint8Array(9));
  bytes.clear();
  bytes.push(Uint8Array.of(7));
  expect(bytes.joined()).toEqual(Uint8Array.of(7));
});
