import { expect, it } from 'vitest';
import { allowedTokens, randomFrom } from '../../tests/grammar/random-model.ts';
import { vocabularyOf } from '../../tests/grammar/vocabularies.ts';
import type { JsonSchema } from '../contract/answer-shape.ts';
import { Automaton } from './automaton/automaton.ts';
import { GrammarConstraint } from './grammar-constraint.ts';
import { taggedObject } from './tagged-object.ts';
import { masksOf } from './vocabulary/masks.ts';

const TAGS = { open: '<p=', named: '>\n', close: '\n</p>\n' };
const texts = ['<p=', '>\n', '\n</', 'p', '</p', '>\n<', '</f>', '/f>', 'ab', '\n\n', '🙂', '1', '12', '[1', ']\n'];
const encoder = new TextEncoder();
const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const longer = texts.map((text) => encoder.encode(text));
const vocabulary = vocabularyOf([...bytes, ...longer]);

function constraintOf(properties: JsonSchema): GrammarConstraint {
  const schema = { type: 'object', properties, additionalProperties: false } as const;
  const automaton = new Automaton([{ before: 'f', value: taggedObject(schema, TAGS, 'tools[0]'), after: '</f>' }]);
  return new GrammarConstraint(automaton, masksOf(vocabulary));
}

const MEMBERS = constraintOf({
  a: { type: 'string' },
  b: { type: ['integer', 'string'] },
  c: { type: 'string', maxLength: 3 },
});

it('a mask has the tokens that the grammar accepts', () => {
  for (let seed = 0; seed < 20; seed++) {
    const [constraint, random] = [MEMBERS.fork(), randomFrom(seed)];
    for (let step = 0; step < 60 && !constraint.complete; step++) {
      constraint.takeForced();
      if (constraint.complete) break;
      const allowed = allowedTokens(constraint, vocabulary);
      const accepted = Array.from(bytes.concat(longer).keys()).filter((token) => constraint.accepts(token));
      // A string without limits allows all accepted tokens. One with limits may lack some tokens of several characters.
      if (constraint.text().includes('<p=c>')) expect(accepted).toEqual(expect.arrayContaining(allowed));
      else expect(allowed).toEqual(accepted);
      expect(allowed.filter((token) => token < 256)).toEqual(accepted.filter((token) => token < 256));
      constraint.accept(allowed[Math.floor(random() * allowed.length)]!);
    }
  }
});

it('a text that repeats itself is closed', () => {
  const constraint = constraintOf({ a: { type: 'string' } });
  constraint.skip('f<p=a>\n');
  for (let i = 0; i < 64; i++) constraint.accept(0x61);
  const tag = [...encoder.encode('\n</p>\n')];
  expect(allowedTokens(constraint, vocabulary)).toEqual([tag[0], vocabulary.encode('\n</')[0]]);
  constraint.accept(0x0a);
  expect(allowedTokens(constraint, vocabulary)).toEqual([tag[1], vocabulary.encode('</p')[0]]);
});

it('optional members may be omitted; the others keep their order', () => {
  for (const text of ['f</f>', 'f<p=b>\n1\n</p>\n</f>', 'f<p=a>\n\n</p>\n<p=c>\nabc\n</p>\n</f>']) {
    const constraint = MEMBERS.fork();
    constraint.skip(text);
    expect(constraint.complete, text).toBe(true);
  }
  for (const text of ['f<p=c>\nabcd', 'f<p=b>\n1\n</p>\n<p=a>', 'f<p=d>']) {
    expect(() => MEMBERS.fork().skip(text), text).toThrow(RangeError);
  }
});

it.each(['a>\nb', 'a\n</p>'])('a name that would end its tag is refused: %j', (name) => {
  expect(() => constraintOf({ [name]: { type: 'string' } })).toThrow(/use another name/);
});

it('every value of an enum can be written, also one that another continues with a line break', () => {
  const values = ['', 'a', 'a\n', 'a\nb'];
  for (const value of values) {
    const constraint = constraintOf({ a: { enum: values } });
    constraint.skip(`f<p=a>\n${value}\n</p>\n</f>`);
    expect(constraint.complete, JSON.stringify(value)).toBe(true);
  }
  expect(() => constraintOf({ a: { enum: values } }).skip('f<p=a>\nb')).toThrow(RangeError);
});
