import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evidenceOf, type FoundEvidence, indexIn, textsIn } from './evidence.ts';

const inText = (text: string, value: unknown, written = JSON.stringify(value)) =>
  evidenceOf(value, written, [{ source: '/input', text }]);

test.each<[text: string, fields: [name: string, value: unknown, start: number | null][]]>([
  [
    'My weight is 120. My car mileage is 120 cc.',
    [
      ['weight', 120, 13],
      ['car mileage', 120, 36],
    ],
  ],
  [
    'My weight is 120. My car mileage is 120 cc.',
    [
      ['car_mileage', 120, 36],
      ['weight', 120, 13],
    ],
  ],
  [
    'From Rome to Rome.',
    [
      ['a', 'Rome', 5],
      ['b', 'Rome', 13],
      ['c', 'Rome', 5],
    ],
  ],
  ['Paid 5 in cash. The unitPrice is 5.', [['unitPrice', 5, 33]]],
  ['The total is not known. It has 5 items.', [['total', 5, 31]]],
])('in %j, each field has the place that belongs to it', (text, fields) => {
  const taken: FoundEvidence[] = [];
  const found = fields.map(([field, value]) =>
    evidenceOf(value, JSON.stringify(value), [{ source: '/input', text }], { field, taken }),
  );
  expect(found.map((one) => one?.start ?? null)).toEqual(fields.map(([, , start]) => start));
});

test.each([
  ['xa'.repeat(1_000), 'a', 2_001],
  ['xa'.repeat(1_100), 'a', 1],
  ['a'.repeat(5_100), 'a'.repeat(5_000), 5_101],
  ['a'.repeat(6_000), 'a'.repeat(5_000), 0],
])('the search for a whole word ends after many that are not (%#)', (before, value, start) => {
  expect(inText(`${before} ${value}`, value)?.start).toBe(start);
});

describe('evidenceOf', () => {
  test.each<[text: string, value: unknown, start: number | null]>([
    ['Ana met Bo.', 'Bo', 8],
    ['Bobo met Bo.', 'Bo', 9],
    ['Bobo met Boris.', 'Bo', 0],
    ['party art', 'art', 6],
    ['a 😀 smile', 'smile', 5],
    ['naïve naïf', 'naïf', 6],
    ['nothing', 'thing!', null],
    ['anything', '', null],
    ['it costs 49.90', 49.9, null],
    ['it costs 49.9.', 49.9, 9],
    ['it costs 149, or 49', 49, 17],
    ['1,500 or 500', 500, 9],
    ['1.5 and 5', 5, 8],
    ['-5 degrees', -5, 0],
    ['room 7b, room 7', 7, 14],
    ['yes: true', true, null],
    ['null', null, null],
  ])('in %j %j stands at %j', (text, value, start) => {
    expect(inText(text, value)?.start ?? null).toBe(start);
  });

  test('the first text that has the value as a whole word is quoted', () => {
    const sources = [
      { source: '/a', text: 'Bobo' },
      { source: '/b', text: 'Bo' },
    ];
    expect(evidenceOf('Bo', '"Bo"', sources)).toEqual({ source: '/b', start: 0, end: 2 });
  });

  test('the search in a text does not depend on where an earlier text has the value', () => {
    const later = `${' '.repeat(100_001)}foobar foo`;
    const sources = [
      { source: '/a', text: 'foobar' },
      { source: '/b', text: later },
    ];
    const start = later.length - 3;
    expect(evidenceOf('foo', '"foo"', sources)).toEqual({ source: '/b', start, end: start + 3 });
  });

  test('a number is quoted with the digits that were written', () => {
    expect(inText('about 1.50 euro', 1.5, '1.50')).toEqual({ source: '/input', start: 6, end: 10 });
  });

  test('evidence always slices to the value', () => {
    const word = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }),
      fc.constantFrom('a', 'aa', '1', '1.5', 'é', '😀'),
    );
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 12 }),
        fc.oneof(word, fc.integer(), fc.double({ noNaN: true })),
        (words, value) => {
          const text = words.join(' ');
          const written = JSON.stringify(value);
          const evidence = inText(text, value, written);
          const wanted = typeof value === 'string' ? value : written;
          if (evidence) expect(text.slice(evidence.start, evidence.end)).toBe(wanted);
          // A string that occurs in the text is always found.
          else if (typeof value === 'string') expect(text.includes(wanted)).toBe(false);
        },
      ),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 500) },
    );
  });
});

test('counts characters up to any index as Python does, also far into a text', () => {
  const text = 'a😀\u{d83d}b'.repeat(700);
  const source = { source: '', text };
  const starts = Array.from(text.matchAll(/./gu), (match) => match.index);
  expect(starts.map((start) => indexIn(source, start, 'code_point'))).toEqual([...starts.keys()]);
  expect(indexIn(source, text.length, 'code_point')).toBe(starts.length);
});

test('textsIn returns every string and number of a value with its pointer', () => {
  expect(textsIn({ a: ['x', 7, null, true], 'b/c': { '~': 'y' } }, '/state')).toEqual([
    { source: '/state/a/0', text: 'x' },
    { source: '/state/a/1', text: '7' },
    { source: '/state/b~1c/~0', text: 'y' },
  ]);
});
