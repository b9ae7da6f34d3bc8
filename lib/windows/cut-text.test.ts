import { expect, test } from 'vitest';
import { cutText } from './cut-text.ts';

const cut = (text: string, size: number, overlap: number, slack?: number) =>
  cutText(text, size, overlap, slack).map(({ start, end }) => text.slice(start, end));

test.each([
  ['a text that fits', 'One two.', 8, 2, ['One two.']],
  ['an empty text', '', 8, 2, ['']],
  ['paragraphs before sentences', 'Aa bb. Cc\n\nDd ee. Ff gg.', 20, 0, ['Aa bb. Cc\n\nDd ee. ', 'Ff gg.']],
  ['sentences before words', 'Aaaa bbbb cc. Dd eeee ffff gggg', 18, 0, ['Aaaa bbbb cc. ', 'Dd eeee ffff gggg']],
  ['words', 'aaaa bbbb cccc dddd', 12, 0, ['aaaa bbbb ', 'cccc dddd']],
  ['a long word', 'aaaaaaaaaa', 4, 0, ['aaaa', 'aaaa', 'aa']],
  ['whole characters', '😀😀😀', 3, 0, ['😀', '😀', '😀']],
])('cuts %s', (_, text, size, overlap, parts) => {
  expect(cut(text, size, overlap, Math.floor(size / 2))).toEqual(parts);
});

test('repeats the end of a window, from the beginning of a sentence or word', () => {
  expect(cut('Aa bb cc dd. Ee ff gg hh. Ii jj kk ll.', 26, 13, 8)).toEqual([
    'Aa bb cc dd. Ee ff gg hh. ',
    'Ee ff gg hh. Ii jj kk ll.',
  ]);
});

const WORDS = ['a', 'bb. ', 'ccc\n\n', ' ', 'dddd dddd', '😀', 'é! ', '。', '\n', 'x'.repeat(40)];

test.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'covers any text in order, within its size (seed %i)',
  (seed) => {
    let state = seed + 1;
    const next = (n: number) => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return state % n;
    };
    const text = Array.from({ length: 200 }, () => WORDS[next(WORDS.length)]).join('');
    const size = 8 + next(120);
    const overlap = next(size);
    const windows = cutText(text, size, overlap);
    expect(windows[0]?.start).toBe(0);
    expect(windows.at(-1)?.end).toBe(text.length);
    for (const [i, { start, end }] of windows.entries()) {
      expect(end - start).toBeLessThanOrEqual(size);
      expect(end).toBeGreaterThan(start);
      expect(text.slice(start, end).isWellFormed()).toBe(true);
      const before = windows[i - 1];
      if (!before) continue;
      expect(start).toBeLessThanOrEqual(before.end);
      expect(start).toBeGreaterThan(before.start);
      expect(end).toBeGreaterThan(before.end);
      expect(before.end - start).toBeLessThanOrEqual(overlap + 1);
    }
  },
);
