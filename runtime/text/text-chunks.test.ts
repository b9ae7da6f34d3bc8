import { expect, it } from 'vitest';
import { textPieces } from './text-chunks.ts';

it.each([
  ['', 1],
  ['short text', 1],
  ['word '.repeat(10_000), 4],
  ['line\n'.repeat(10_000), 4],
  ['x'.repeat(40_000), 3],
  ['👋🏽'.repeat(10_000), 3],
  ['1, 2; '.repeat(10_000), 4],
])('cuts %.12s… into pieces that make it whole again', (text, count) => {
  const pieces = [...textPieces(text)];
  expect(pieces.join('')).toBe(text);
  expect(pieces.length).toBe(count);
  for (const piece of pieces) {
    expect(piece.length).toBeLessThanOrEqual(16_384);
    expect(piece.isWellFormed()).toBe(true);
  }
});

it('cuts before a space between letters, or behind a line break', () => {
  const [first, second] = textPieces('word '.repeat(10_000));
  expect(first!.endsWith('word')).toBe(true);
  expect(second!.startsWith(' word')).toBe(true);
  const [line, next] = textPieces('line\n'.repeat(10_000));
  expect(line!.endsWith('\n')).toBe(true);
  expect(next!.startsWith('line')).toBe(true);
});
