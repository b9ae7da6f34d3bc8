import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StateSpans } from './extractions.ts';

test.each([
  ['1,080.00', 'total $1,080.00 due', 1080, '1,080.00'],
  ['a comma for decimals', 'Summe 1.234,50 Euro', 1234.5, '1.234,50'],
  ['spaces between thousands', '12 500 km', 12500, '12 500'],
  ['an apostrophe', "CHF 1'000", 1000, "1'000"],
  ['a minus', 'from -5 to 5', -5, '-5'],
  ['a range', '3-7 days', 7, '7'],
  ['trailing zeros', 'costs 49.90.', 49.9, '49.90'],
  ['a number that is not there', 'about ten', 10, null],
])('a number is found however it is written: %s', (_, text, value, wanted) => {
  const span = new StateSpans(text, 'utf16').ofNumber(value);
  expect(span && text.slice(...span)).toBe(wanted);
});

test('a span spells its text, in either unit', () => {
  const word = fc.constantFrom('a', 'é', '😀', '👩‍👩‍👧', '\ud83d', 'ab', ' ', '\n');
  fc.assert(
    fc.property(fc.array(word, { maxLength: 20 }), fc.nat(), fc.nat(), (words, from, length) => {
      const text = words.join('');
      const points = [...text];
      fc.pre(points.length > 0);
      const start = from % points.length;
      const value = points.slice(start, start + 1 + (length % 4)).join('');
      const utf16 = new StateSpans(text, 'utf16').ofText(value)!;
      expect(text.slice(...utf16)).toBe(value);
      const [first, end] = new StateSpans(text, 'code_point').ofText(value)!;
      // A lone surrogate is one code point, for JavaScript's iterator and for Python alike.
      if (![...text].some((point) => /\p{Cs}/u.test(point))) expect(points.slice(first, end).join('')).toBe(value);
    }),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 500) },
  );
});
