import { expect, it } from 'vitest';
import { textChunks } from './text-chunks.ts';

it.each([
  ['', 1],
  ['short text', 1],
  ['word '.repeat(10_000), 4],
  ['line\n'.repeat(10_000), 4],
  ['x'.repeat(40_000), 3],
  ['👋🏽'.repeat(10_000), 3],
  ['1, 2; '.repeat(10_000), 4],
])('cuts %.12s… into chunks that make it whole again', (text, count) => {
  const chunks = [...textChunks(text)];
  expect(chunks.join('')).toBe(text);
  expect(chunks.length).toBe(count);
  for (const piece of chunks) {
    expect(piece.length).toBeLessThanOrEqual(16_384);
    expect(piece.isWellFormed()).toBe(true);
  }
});

it('cuts before a space between letters, or behind a line break', () => {
  const [first, second] = textChunks('word '.repeat(10_000));
  expect(first!.endsWith('word')).toBe(true);
  expect(second!.startsWith(' word')).toBe(true);
  const [line, next] = textChunks('line\n'.repeat(10_000));
  expect(line!.endsWith('\n')).toBe(true);
  expect(next!.startsWith('line')).toBe(true);
});
