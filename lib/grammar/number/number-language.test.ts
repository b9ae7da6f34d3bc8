import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decimal } from './decimal.ts';
import { NumberLanguage, type NumberRules, numbersAreDisjoint } from './number-language.ts';

const bound = fc.constantFrom(undefined, undefined, -20, -1.5, -1, -0.5, 0, 0.25, 0.3, 1, 7, 9.9, 12, 99.5, 120);
const rules: fc.Arbitrary<NumberRules> = fc
  .record({
    integer: fc.boolean(),
    minimum: bound,
    maximum: bound,
    above: bound,
    below: bound,
    multipleOf: fc.subarray([0.1, 0.25, 0.5, 2, 3, 5], { maxLength: 2 }),
  })
  .map(
    (all) =>
      Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as unknown as NumberRules,
  );

/** Tells whether the rules allow a number. Computes in hundredths, in which all bounds and steps are whole numbers. */
function allows(text: string, { integer, minimum, maximum, above, below, multipleOf }: NumberRules): boolean {
  const cents = Math.round(Number(text) * 100);
  const at = (n: number) => Math.round(n * 100);
  return (
    (!integer || !text.includes('.')) &&
    (minimum === undefined || cents >= at(minimum)) &&
    (maximum === undefined || cents <= at(maximum)) &&
    (above === undefined || cents > at(above)) &&
    (below === undefined || cents < at(below)) &&
    multipleOf.every((step) => cents % at(step) === 0)
  );
}

/** Returns every number from -25 to 125 with up to two digits after the point, as the grammar writes it. */
const texts = Array.from({ length: 15_001 }, (_, i) => i - 2500).flatMap((cents) => {
  const [whole, fraction] = (Math.abs(cents) / 100).toFixed(2).split('.') as [string, string];
  const sign = cents < 0 ? '-' : '';
  const forms = [`${sign}${whole}.${fraction}`];
  if (fraction.endsWith('0')) forms.push(`${sign}${whole}.${fraction[0]}`);
  if (fraction === '00') forms.push(`${sign}${whole}`);
  return forms;
});

test('a number is accepted when the rules allow it, and all its beginnings fit', () => {
  fc.assert(
    fc.property(rules, fc.array(fc.nat(texts.length - 1), { minLength: 50, maxLength: 50 }), (rule, picks) => {
      const language = new NumberLanguage(rule);
      const places =
        rule.multipleOf.length === 0 ? 2 : Math.max(...rule.multipleOf.map((step) => decimal(step).places));
      for (const text of picks.map((pick) => texts[pick]!)) {
        // Trailing zeros that the step does not need are not written.
        const short = (text.split('.')[1] ?? '').length <= places;
        const allowed = allows(text, rule) && short;
        expect([rule, text, language.accepts(text)]).toEqual([rule, text, allowed]);
        if (allowed) for (let end = 0; end <= text.length; end++) expect(language.fits(text.slice(0, end))).toBe(true);
      }
    }),
    { numRuns: 300 },
  );
});

test('whatever fits can be completed, even with excluded numbers', () => {
  const choice = fc.array(fc.nat(1e6), { minLength: 20, maxLength: 20 });
  fc.assert(
    fc.property(rules, fc.array(rules, { maxLength: 2 }), choice, (rule, except, picks) => {
      const language = new NumberLanguage(rule, except);
      if (language.empty) return;
      let text = '';
      for (const pick of picks) {
        const next = [...'-.0123456789'].filter((char) => language.fits(text + char));
        if (next.length === 0) break;
        text += next[pick % next.length];
      }
      expect([text, [...'-.0123456789'].some((char) => language.fits(text + char)) || language.accepts(text)]).toEqual([
        text,
        true,
      ]);
      if (language.accepts(text)) {
        expect(
          except.some(
            (other) =>
              (!other.integer || Number.isInteger(Number(text))) &&
              new NumberLanguage({ ...other, integer: false }).accepts(text),
          ),
        ).toBe(false);
      }
    }),
    { numRuns: 300 },
  );
});

test('a set of which all numbers are excluded is empty', () => {
  const all: NumberRules = { integer: false, multipleOf: [] };
  const whole: NumberRules = { integer: true, multipleOf: [] };
  expect(new NumberLanguage(whole, [whole]).empty).toBe(true);
  expect(new NumberLanguage(all, [all]).empty).toBe(true);
  expect(new NumberLanguage(all, [whole]).fits('12.00000000000')).toBe(true);
  expect(new NumberLanguage(all, [whole]).fits('1234567890123456')).toBe(false);
});

test.each<[Partial<NumberRules>, Partial<NumberRules>, boolean]>([
  [{ maximum: 1 }, { minimum: 1 }, false],
  [{ below: 1 }, { minimum: 1 }, true],
  [{ above: 5 }, { below: 6 }, false],
  [{ above: 5, integer: true }, { below: 6 }, true],
  [{ above: 5 }, { below: 5.0000001 }, false],
  [{ multipleOf: [2], minimum: 1, maximum: 3 }, { multipleOf: [3], minimum: 1, maximum: 5 }, true],
  [{ multipleOf: [2] }, { multipleOf: [3] }, false],
  [{ integer: true }, { minimum: 0.1, maximum: 0.9 }, true],
])('%j and %j have nothing in common: %s', (a, b, apart) => {
  const full = (part: Partial<NumberRules>): NumberRules => ({ integer: false, multipleOf: [], ...part });
  expect(numbersAreDisjoint(full(a), full(b))).toBe(apart);
  expect(numbersAreDisjoint(full(b), full(a))).toBe(apart);
});

test.each([
  [{ minimum: 1e300 }, true],
  [{ multipleOf: [1e-300] }, false],
  [{ multipleOf: [1e-300], minimum: 1e-300, maximum: 1e-20 }, true],
  [{ multipleOf: [3e15], minimum: 1 }, false],
  [{ integer: true, minimum: Number.MAX_SAFE_INTEGER }, false],
])('%j can be written by no number: %s', (rule, empty) => {
  expect(new NumberLanguage({ integer: false, multipleOf: [], ...rule }).empty).toBe(empty);
});
