import { describe, expect, it } from 'vitest';
import { Sequence } from '../cache/sequence.ts';
import { FIRST_MEDIA_ID, inImage, type MediaFeatures } from './media-feeds.ts';

const SHAPE = { layers: [{ heads: 1, headSize: 1 }] };
const image = (firstId: number, count: number, columns?: number): MediaFeatures => {
  return { firstId, count, rows: new Float32Array(count), ...(columns ? { columns } : {}) };
};
const [WIDE, TALL, LINE] = [FIRST_MEDIA_ID, FIRST_MEDIA_ID + 100, FIRST_MEDIA_ID + 200];
const MEDIA = [image(WIDE, 6, 3), image(TALL, 4, 1), image(LINE, 3)];
const ids = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

function append(sequence: Sequence, tokens: readonly number[], parent = sequence.length - 1): number {
  return tokens.reduce((before, token) => sequence.append(token, before, inImage(token, MEDIA)), parent);
}

function positions(sequence: Sequence, start = 0): string {
  return [...sequence.rotary.of(start, sequence.length)].map((axis) => axis.join(' ')).join(' | ');
}

describe('rotary positions in time, height and width', () => {
  it.each<[name: string, tokens: number[], expected: string]>([
    ['text', [7, 7, 7], '0 1 2 | 0 1 2 | 0 1 2'],
    [
      'an image between texts: they go on behind its longer side',
      [7, 7, ...ids(WIDE, 6), 7, 7],
      '0 1 2 2 2 2 2 2 5 6 | 0 1 2 2 2 3 3 3 5 6 | 0 1 2 3 4 2 3 4 5 6',
    ],
    ['an image first, and a tall one', [...ids(TALL, 4), 7], '0 0 0 0 4 | 0 1 2 3 4 | 0 0 0 0 4'],
    [
      'two images side by side',
      [...ids(TALL, 4), ...ids(WIDE, 6), 7],
      '0 0 0 0 4 4 4 4 4 4 7 | 0 1 2 3 4 4 4 5 5 5 7 | 0 0 0 0 4 5 6 4 5 6 7',
    ],
    ['features in a line', [7, ...ids(LINE, 3), 7], '0 1 2 3 4 | 0 1 2 3 4 | 0 1 2 3 4'],
  ])('%s', (_, tokens, expected) => {
    const sequence = new Sequence(SHAPE, 16);
    append(sequence, tokens);
    sequence.checkIntegrity();
    expect(positions(sequence)).toBe(expected);
  });

  it('of a prefix that is taken over in the middle of an image, after a copy and after growth, are the same', () => {
    const whole = [7, 7, ...ids(WIDE, 6), 7, 7];
    const first = new Sequence(SHAPE, 16);
    append(first, whole);
    const expected = positions(first);
    for (let kept = 0; kept <= whole.length; kept++) {
      const copy = new Sequence(SHAPE, kept);
      copy.copyFrom(first, kept);
      copy.resize(16);
      append(copy, whole.slice(kept));
      copy.checkIntegrity();
      expect(positions(copy)).toBe(expected);
    }
  });

  it('of branches behind an image restart where the image ends', () => {
    const sequence = new Sequence(SHAPE, 16);
    const end = append(sequence, [7, ...ids(WIDE, 6)]);
    append(sequence, [1, 2], end);
    append(sequence, [3, 4], end);
    sequence.checkIntegrity();
    expect(positions(sequence, end + 1)).toBe('4 5 4 5 | 4 5 4 5 | 4 5 4 5');
  });
});
