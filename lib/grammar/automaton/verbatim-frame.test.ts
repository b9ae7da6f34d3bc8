import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allowedTokens } from '../../../tests/grammar/random-model.ts';
import { smallVocabulary, vocabularyOf } from '../../../tests/grammar/vocabularies.ts';
import type { JsonSchema } from '../../contract/answer-shape.ts';
import { GrammarConstraint } from '../grammar-constraint.ts';
import { compileSchema } from '../resolve/compile.ts';
import { QuotedTexts } from '../text/quoted-texts.ts';
import { masksOf } from '../vocabulary/masks.ts';
import { Automaton } from './automaton.ts';

const encoder = new TextEncoder();
const small = smallVocabulary();

function constraintOf(schema: JsonSchema, texts: readonly string[], vocabulary = small): GrammarConstraint {
  const root = compileSchema(
    { type: 'object', properties: { v: schema }, required: ['v'], additionalProperties: false },
    { path: 'schema' },
  );
  return new GrammarConstraint(new Automaton(root, new QuotedTexts(texts)), masksOf(vocabulary));
}

/** Generates one answer with choices among the allowed tokens; checks each mask against `accepts`. */
function generate(
  constraint: GrammarConstraint,
  pick: (allowed: readonly number[]) => number,
  vocabulary = small,
): string {
  for (let i = 0; i < 400 && !constraint.complete; i++) {
    constraint.takeForced();
    if (constraint.complete) break;
    const allowed = allowedTokens(constraint, vocabulary);
    const accepted = Array.from({ length: vocabulary.size }, (_, token) => token).filter((t) => constraint.accepts(t));
    expect(allowed).toEqual(accepted);
    constraint.accept(pick(allowed));
  }
  return constraint.closed();
}

const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom('a', 'b', ' ', '\n', '"', '\\', 'é', '😀', '\u0001', '\ud800', 'ab'),
);
const text = fc.array(character, { maxLength: 30 }).map((list) => list.join(''));

test('a string is always a part of one of the texts, without white space at its ends, and the mask is exact', () => {
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 3 }),
      fc.constantFrom<JsonSchema>(
        { type: 'string' },
        { type: ['string', 'null'] },
        { type: 'string', maxLength: 3 },
        { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: 3 },
      ),
      fc.infiniteStream(fc.nat()),
      (texts, schema, stream) => {
        fc.pre(texts.some((one) => /[!-~é😀]/u.test(one)));
        const choices = stream[Symbol.iterator]();
        const next = () => choices.next().value as number;
        const { v } = JSON.parse(generate(constraintOf(schema, texts), (allowed) => allowed[next() % allowed.length]!));
        for (const value of [v].flat()) {
          if (value === null) continue;
          expect(texts.some((one) => one.includes(value))).toBe(true);
          if (schema.maxLength === undefined) expect(value.trim()).toBe(value);
          else expect([...value].length).toBeLessThanOrEqual(3);
        }
      },
    ),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 100) },
  );
});

test.each([
  ['least length', { type: 'string', minLength: 4 }, 'ab abcd', /^.{4,}$/],
  ['format', { type: 'string', format: 'date' }, 'no date', /^\d{4}-\d\d-\d\d$/],
  ['enum', { enum: ['x', 'y'] }, 'neither', /^[xy]$/],
] as const)('a string with a %s keeps its rule', (_, schema, source, wanted) => {
  const { v } = JSON.parse(generate(constraintOf(schema, [source]), (allowed) => allowed.at(-1)!));
  expect(v).toMatch(wanted);
});

test('tokens that end within a character or span the closing quote are followed', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const é = encoder.encode('é');
  const own = vocabularyOf([...bytes, Uint8Array.of(0x63, é[0]!), encoder.encode('é"'), encoder.encode('é"}')]);
  const constraint = constraintOf({ type: 'string' }, ['café'], own);
  constraint.skip('{"v":"');
  constraint.accept(0x63);
  expect(allowedTokens(constraint, own)).toEqual([0x22, 0x61]);
  const whole = constraintOf({ type: 'string' }, ['café'], own);
  whole.skip('{"v":"caf');
  expect(allowedTokens(whole, own)).toEqual([0x22, é[0]!, 257, 258]);
});
