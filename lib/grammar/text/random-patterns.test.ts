import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fuel, TooLarge } from '../fuel.ts';
import { stringLanguage } from './compile-string.ts';

const CHARACTERS = [
  'a',
  'b',
  'K',
  '\u212a',
  '1',
  '_',
  '-',
  ' ',
  'é',
  'e\u0301',
  '😀',
  'א',
  '\n',
  '\t',
  '"',
  '\u2028',
  '.',
];
const ESCAPES = ['\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\n', '\\u0061', '\\u{1F600}', '\\ud83d\\ude00', '\\x61'];
const PROPERTIES = ['\\p{L}', '\\P{L}', '\\p{Script=Hebrew}', '\\p{Nd}', '\\p{M}'];
const QUANTIFIERS = ['*', '+', '?', '{2}', '{0}', '{1,}', '{0,2}', '*?', '+?', '{1,2}?'];

const plain = fc.constantFrom('a', 'b', '1', '_', 'é', '😀', 'א', '"', '\\.');
const inClass = fc.constantFrom(
  'a',
  'b-z',
  '0-9',
  'é-😀',
  '\\d',
  '\\W',
  '\\s',
  '\\p{L}',
  '\\P{Lu}',
  '\\-',
  '\\u{1F600}-\\u{1F64F}',
);
const charClass = fc
  .tuple(fc.constantFrom('[', '[^'), fc.array(inClass, { maxLength: 3 }))
  .map(([open, parts]) => `${open}${parts.join('')}]`);
const atom = (group: fc.Arbitrary<string>) =>
  fc.oneof(plain, plain, charClass, fc.constantFrom('.', '.', '.', ...ESCAPES, ...PROPERTIES), group);

const { pattern } = fc.letrec<{ pattern: string; group: string }>((tie) => ({
  pattern: fc
    .array(
      fc.array(
        fc.oneof({ weight: 4, arbitrary: quantified(tie('group')) }, fc.constantFrom('^', '$'), ahead(tie('pattern'))),
        { maxLength: 4 },
      ),
      {
        minLength: 1,
        maxLength: 3,
      },
    )
    .map((alternatives) => alternatives.map((parts) => parts.join('')).join('|')),
  group: fc.oneof(
    { maxDepth: 2 },
    plain,
    fc.tuple(fc.constantFrom('(', '(?:'), tie('pattern')).map(([open, inner]) => `${open}${inner})`),
  ),
}));

function ahead(inner: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(fc.constantFrom('(?=', '(?!'), inner).map(([open, inner]) => `${open}${inner})`);
}

function quantified(group: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(atom(group), fc.option(fc.constantFrom(...QUANTIFIERS), { nil: '', freq: 2 }))
    .map((parts) => parts.join(''));
}

test('a random pattern matches what a RegExp matches', () => {
  const text = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 4 }).map((chars) => chars.join(''));
  let matched = 0;
  fc.assert(
    fc.property(
      // A pattern that is not bound to both ends matches nearly every text.
      fc.oneof(
        pattern,
        pattern.map((inner) => `^(?:${inner})$`),
      ),
      fc.nat(2),
      fc.integer({ min: 1, max: 4 }),
      fc.array(text, { minLength: 40, maxLength: 40 }),
      (source, min, more, texts) => {
        const expression = new RegExp(source, 'u');
        const language = languageOf(source, min, min + more);
        if (!language) return;
        for (const one of texts) {
          const length = [...one].length;
          const wanted = expression.test(one) && length >= min && length <= min + more;
          expect([source, one, language.has(one)]).toEqual([source, one, wanted]);
          matched += wanted ? 1 : 0;
        }
      },
    ),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 300), seed: 4 },
  );
  expect(matched).toBeGreaterThan(100);
});

function languageOf(pattern: string, min: number, max: number) {
  try {
    return stringLanguage({ min, max, patterns: [pattern], formats: [] }, 'generates', new Fuel());
  } catch (error) {
    if (error instanceof TooLarge) return null;
    throw error;
  }
}
