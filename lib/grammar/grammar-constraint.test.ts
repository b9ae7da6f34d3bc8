import { expect, it } from 'vitest';
import { allowedTokens } from '../../tests/grammar/random-model.ts';
import { vocabularyOf } from '../../tests/grammar/vocabularies.ts';
import type { JsonSchema } from '../contract/answer-shape.ts';
import { Automaton } from './automaton/automaton.ts';
import { GrammarConstraint } from './grammar-constraint.ts';
import { compileSchema } from './resolve/compile.ts';
import { masksOf } from './vocabulary/masks.ts';

const encoder = new TextEncoder();
const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const vocabulary = vocabularyOf([...bytes, ...['ab', 'w"'].map((text) => encoder.encode(text))]);
const AB = bytes.length;

/** Returns the constraint of an object whose only member `v` has this schema. */
function constraintOf(schema: JsonSchema): GrammarConstraint {
  const root = compileSchema({ type: 'object', properties: { v: schema }, required: ['v'] }, { path: 'schema' });
  return new GrammarConstraint(new Automaton(root), masksOf(vocabulary));
}

it('a text that repeats itself is closed only with tokens that begin with the withheld bytes', () => {
  const constraint = constraintOf({
    anyOf: [{ type: 'string', pattern: '^(?:ab)*xyzw{1,2}$' }, { const: `${'ab'.repeat(80)}xyzw` }],
  });
  constraint.skip('{"v":"');
  for (let i = 0; i < 80; i++) constraint.accept(AB);
  constraint.accept('x'.charCodeAt(0));
  // `w` is withheld, because `w"` is also possible.
  expect(constraint.takeForced()).toEqual([...encoder.encode('yz')]);
  const allowed = allowedTokens(constraint, vocabulary);
  expect(allowed).toEqual(
    Array.from({ length: vocabulary.size }, (_, token) => token).filter((t) => constraint.accepts(t)),
  );
  expect(allowed).toEqual(['w'.charCodeAt(0), AB + 1]);
});

it('a text that repeats itself is led to an end that its pattern allows', () => {
  const constraint = constraintOf({ type: 'string', pattern: '^[a-z]+(?:-error|-exception)$' });
  constraint.skip('{"v":"');
  for (let i = 0; i < 80; i++) constraint.accept(AB);
  let chosen = 0;
  for (constraint.takeForced(); !constraint.complete && chosen < 10; constraint.takeForced()) {
    constraint.accept(allowedTokens(constraint, vocabulary).at(-1)!);
    chosen++;
  }
  expect(constraint.text()).toBe(`{"v":"${'ab'.repeat(80)}-error"}`);
});

it('a text that repeats itself may go on without a pattern until it has its least length', () => {
  const constraint = constraintOf({ type: 'string', minLength: 200 });
  constraint.skip('{"v":"');
  for (let i = 0; i < 80; i++) constraint.accept(AB);
  expect(allowedTokens(constraint, vocabulary)).toContain('x'.charCodeAt(0));
});
