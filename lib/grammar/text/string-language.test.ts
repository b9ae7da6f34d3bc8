import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Fuel } from '../fuel.ts';
import { patternDfa } from './compile-string.ts';
import { StringLanguage } from './string-language.ts';

describe('lengths and patterns together', () => {
  test('are exact: every text that fits can be completed', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('^(ab)*$', '^a*$', 'b', '^(aa|aaa)b$', '^(a{3})*$', '^a{2}$|^b{5}$'),
        fc.nat(8),
        fc.nat(8),
        (pattern, min, extra) => {
          const dfa = patternDfa(pattern, new Fuel());
          const language = new StringLanguage(dfa, min, min + extra, new Fuel());
          const regex = new RegExp(pattern, 'u');
          const all = texts('ab', min + extra).filter((text) => text.length >= min && regex.test(text));
          expect(language.empty).toBe(all.length === 0);
          for (const text of texts('ab', 6)) expect(language.has(text)).toBe(all.includes(text));
          for (const text of texts('ab', 4)) {
            expect(goesOn(language, text)).toBe(all.some((whole) => whole.startsWith(text)));
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a huge maxLength costs nothing', () => {
    expect(new StringLanguage(null, 0, 1e9, new Fuel()).has('a')).toBe(true);
  });
});

function texts(letters: string, longest: number): string[] {
  const all = [''];
  for (const text of all) if (text.length < longest) all.push(...[...letters].map((letter) => text + letter));
  return all;
}

function goesOn(language: StringLanguage, text: string): boolean {
  let state = language.empty ? -1 : 0;
  [...text].forEach((char, i) => {
    if (state >= 0) state = language.step(state, i, char.codePointAt(0)!);
  });
  return state >= 0;
}
