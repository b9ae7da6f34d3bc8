import { describe, expect, test } from 'vitest';
import type { AnswerShape, JsonSchema } from '../answer-shape.ts';
import type { DecideTask, ExtractTask } from '../backend.ts';
import type { Constraint, Vocabulary } from '../grammar/constraint.ts';
import { shapeConstraint, taskGrammar } from './task-grammar.ts';

const encoder = new TextEncoder();

/**
 * Creates a vocabulary: the 256 bytes as tokens 0 to 255, these texts from 256 on, and then the end token. `encode`
 * always takes the longest token that fits.
 */
function vocabularyOf(...texts: string[]): Vocabulary {
  const all = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...texts.map((text) => encoder.encode(text)),
  ];
  const encode = (text: string): number[] => {
    const bytes = encoder.encode(text);
    const tokens: number[] = [];
    for (let at = 0; at < bytes.length; at += all[tokens.at(-1)!]!.length) {
      const fitting = all
        .map((token, id) => ({ token, id }))
        .filter(({ token }) => token.every((byte, i) => bytes[at + i] === byte));
      tokens.push(fitting.reduce((best, one) => (one.token.length > best.token.length ? one : best)).id);
    }
    return tokens;
  };
  return { size: all.length + 1, bytes: (token) => all[token] ?? null, encode, end: new Set([all.length]) };
}

const vocabulary = vocabularyOf(
  '{"',
  '":"',
  '":',
  '","',
  '"}',
  'null',
  'value',
  'reason',
  'name',
  'red',
  ' wine',
  'blue',
  '":null',
  '😀',
);
const spell = (tokens: readonly number[]) => tokens.map((token) => new TextDecoder().decode(vocabulary.bytes(token)!));

/** Returns the allowed tokens of more than one byte, and the allowed bytes. */
function allowed(constraint: Constraint): { words: string[]; bytes: string } {
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  constraint.mask(mask);
  const tokens = Array.from({ length: vocabulary.size }, (_, token) => token).filter(
    (token) => mask[token >> 5]! & (1 << (token & 31)),
  );
  const bytes = tokens.filter((token) => token < 128).map((token) => String.fromCharCode(token));
  return { words: spell(tokens.filter((token) => token >= 256 && token < vocabulary.size - 1)), bytes: bytes.join('') };
}

/** Generates a text byte by byte, accepting forced tokens on the way, and returns the forced text. */
function say(constraint: Constraint, text: string): string[] {
  const forced: string[] = [...spell(constraint.takeForced())];
  for (const byte of encoder.encode(text)) {
    constraint.accept(byte);
    forced.push(...spell(constraint.takeForced()));
  }
  return forced;
}

const decide = (more: Partial<DecideTask> = {}): DecideTask => ({ type: 'decide', name: 't', question: '?', ...more });
const extract = (shape: AnswerShape): ExtractTask => ({ type: 'extract', name: 't', instruction: 'all', shape });

describe('decide with options', () => {
  test('has a path for each, to the end of its quote', () => {
    const { head, choice, constraint, unsettled } = taskGrammar(
      decide({ options: ['red', 'red wine', 'blue'] }),
      vocabulary,
    );
    expect(spell(head)).toEqual(['{"', 'value', '":"']);
    expect(choice!.paths.map(spell)).toEqual([
      ['red', '"}'],
      ['red', ' wine', '"}'],
      ['blue', '"}'],
    ]);
    expect(choice!.options).toEqual([0, 1, 2]);
    expect(constraint(1).complete).toBe(true);
    expect(constraint(1).closed()).toBe('{"value":"red wine"}');
    expect(unsettled).toBe('{"value":""}');
  });

  test('where an instruction may ask for a reason, has one path with and one without', () => {
    const { choice, constraint } = taskGrammar(
      decide({ options: ['red', 'blue'], instruction: 'Say why.' }),
      vocabulary,
    );
    expect(choice!.paths.map(spell)).toEqual([
      ['red', '"}'],
      ['red', '","'],
      ['blue', '"}'],
      ['blue', '","'],
    ]);
    expect(choice!.options).toEqual([0, 0, 1, 1]);
    const reasoned = constraint(1);
    expect(spell(reasoned.takeForced())).toEqual(['reason', '":"']);
    expect(say(reasoned, 'so')).toEqual([]);
    expect(reasoned.text()).toBe('{"value":"red","reason":"so');
    expect(reasoned.closed()).toBe('{"value":"red","reason":"so"}');
    expect(say(reasoned, '"')).toEqual(['}']);
    expect(reasoned.complete).toBe(true);
  });

  test('options of any text are taken byte for byte', () => {
    const options = ['"', '\\', '\n', '', 'é', '{}', 'a"b'].filter((option) => option !== '');
    const { choice, constraint } = taskGrammar(decide({ options }), vocabulary);
    choice!.paths.forEach((_, path) => {
      expect(JSON.parse(constraint(path).text())).toEqual({ value: options[choice!.options[path]!] });
    });
  });

  test('an instruction that is empty asks for no reason', () => {
    const { choice } = taskGrammar(decide({ options: ['red', 'blue'], instruction: ' ' }), vocabulary);
    expect(choice!.options).toEqual([0, 1]);
  });

  test('the most and longest options that a task may have', () => {
    const options = Array.from({ length: 256 }, (_, i) => `${i}`.padEnd(1_024, 'x'));
    const { constraint } = taskGrammar(decide({ options }), vocabulary);
    expect(JSON.parse(constraint(255).text())).toEqual({ value: options[255] });
  });

  test('one option leaves no choice', () => {
    const { choice, constraint } = taskGrammar(decide({ options: ['red'] }), vocabulary);
    expect(choice!.paths.length).toBe(1);
    expect(constraint(0).text()).toBe('{"value":"red"}');
  });
});

describe('free decide', () => {
  test('a short text; a reason only with an instruction', () => {
    const plain = taskGrammar(decide(), vocabulary).constraint();
    expect(say(plain, 'yes')).toEqual([]);
    expect(plain.closed()).toBe('{"value":"yes"}');
    expect(say(plain, '"')).toEqual(['}']);
    expect(plain.complete).toBe(true);
    const reasoned = taskGrammar(decide({ instruction: 'why' }), vocabulary).constraint();
    say(reasoned, 'yes"');
    expect(allowed(reasoned).bytes).toBe(',}');
    expect(say(reasoned, ',')).toEqual(['"', 'reason', '":"']);
  });

  test('nothing said is an empty value', () => {
    expect(taskGrammar(decide(), vocabulary).unsettled).toBe('{"value":""}');
    expect(taskGrammar(decide(), vocabulary).constraint().closed()).toBe('{"value":""}');
  });

  test('every call of `constraint` begins anew', () => {
    const grammar = taskGrammar(decide(), vocabulary);
    say(grammar.constraint(), 'yes');
    expect(grammar.constraint().text()).toBe('{"value":"');
  });
});

describe('forced text', () => {
  const keys = extract({ kind: 'keys', keys: ['name', 'x'] });

  test('its last token is held back before a choice that a longer token could make', () => {
    const { head, constraint } = taskGrammar(keys, vocabulary);
    expect(spell(head)).toEqual(['{"', 'name']);
    const answer = constraint();
    expect(answer.takeForced()).toEqual([]);
    expect(allowed(answer)).toEqual({ words: ['":"', '":', '":null'], bytes: '' });
    answer.accept(vocabulary.encode('":null')[0]!);
    expect(spell(answer.takeForced())).toEqual([',', '"', 'x']);
    expect(answer.text()).toBe('{"name":null,"x');
    expect(answer.closed()).toBe('{"name":null,"x":null}');
  });

  test('the token itself may be taken, and then the choice is free', () => {
    const answer = taskGrammar(keys, vocabulary).constraint();
    answer.accept(vocabulary.encode('":')[0]!);
    expect(answer.takeForced()).toEqual([]);
    // The other tokens begin a string with a colon, comma or brace.
    expect(allowed(answer)).toEqual({ words: ['":"', '":', '","', '"}', 'null', '":null'], bytes: '"n' });
  });

  test('nothing is held back before free text', () => {
    const shape: AnswerShape = {
      kind: 'schema',
      schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    };
    expect(spell(taskGrammar(extract(shape), vocabulary).head)).toEqual(['{"', 'name', '":"']);
  });

  test('is cut at a whole character', () => {
    const shape: AnswerShape = {
      kind: 'schema',
      schema: { type: 'object', properties: { v: { enum: ['é1', 'è2'] } }, required: ['v'] },
    };
    const answer = shapeConstraint(shape, vocabulary);
    const forced = spell(answer.takeForced()).join('');
    expect(forced).toBe('{"v":"');
    answer.accept(0xc3);
    expect(answer.text()).toBe('{"v":"');
    expect(answer.closed()).toBe('{"v":null}');
    answer.accept(0xa9);
    expect(spell(answer.takeForced()).join('')).toBe('1"}');
  });
});

describe('what a cut answer becomes', () => {
  const lines: JsonSchema = {
    type: 'object',
    properties: {
      s: { type: ['string', 'null'] },
      n: { type: ['number', 'null'] },
      e: { enum: ['one', 'two'] },
      list: {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string' }, q: { type: 'integer' } }, required: ['k', 'q'] },
      },
      numbers: { type: 'array', items: { type: 'number' } },
      o: { type: 'boolean' },
    },
    required: ['s', 'n', 'e', 'list', 'numbers'],
  };
  const rest = '"list":null,"numbers":null';
  test.each([
    ['', `{"s":null,"n":null,"e":null,${rest}}`],
    ['"', `{"s":"","n":null,"e":null,${rest}}`],
    ['"a', `{"s":"a","n":null,"e":null,${rest}}`],
    ['"a\\', `{"s":"a","n":null,"e":null,${rest}}`],
    ['"a\\"', `{"s":"a\\"","n":null,"e":null,${rest}}`],
    ['"{[,', `{"s":"{[,","n":null,"e":null,${rest}}`],
    ['n', `{"s":null,"n":null,"e":null,${rest}}`],
    ['null,"n":12', `{"s":null,"n":null,"e":null,${rest}}`],
    ['null,"n":12,', `{"s":null,"n":12,"e":null,${rest}}`],
    ['null,"n":12,"e":"o', `{"s":null,"n":12,"e":null,${rest}}`],
    ['null,"n":1,"e":"one","list":[', '{"s":null,"n":1,"e":"one","list":[],"numbers":null}'],
    ['null,"n":1,"e":"one","list":[{', '{"s":null,"n":1,"e":"one","list":[{"k":null,"q":null}],"numbers":null}'],
    ['null,"n":1,"e":"one","list":[{"k":"a', '{"s":null,"n":1,"e":"one","list":[{"k":"a","q":null}],"numbers":null}'],
    [
      'null,"n":1,"e":"one","list":[{"k":"a","q":1},',
      '{"s":null,"n":1,"e":"one","list":[{"k":"a","q":1}],"numbers":null}',
    ],
    ['null,"n":1,"e":"one","list":[],"numbers":[1,2', '{"s":null,"n":1,"e":"one","list":[],"numbers":[1]}'],
    [
      'null,"n":1,"e":"one","list":[],"numbers":[1],"o":',
      '{"s":null,"n":1,"e":"one","list":[],"numbers":[1],"o":null}',
    ],
    ['null,"n":1,"e":"one","list":[],"numbers":[1],', '{"s":null,"n":1,"e":"one","list":[],"numbers":[1]}'],
  ])('%s', (said, closed) => {
    const answer = shapeConstraint({ kind: 'schema', schema: lines }, vocabularyOf());
    // Even forced text is generated byte by byte, so the text is cut exactly where the table says.
    for (const byte of encoder.encode(`{"s":${said}`)) answer.accept(byte);
    expect(answer.closed()).toBe(closed);
  });

  test.each([
    ['{', '{}'],
    ['{"a', '{}'],
    ['{"a"', '{}'],
    ['{"a":', '{"a":null}'],
    ['{"é":1,"b', '{"é":1}'],
    ['{"a":"x","b\\"c":"', '{"a":"x","b\\"c":""}'],
    ['{"a":tr', '{"a":null}'],
  ])('of an open object: %s', (said, closed) => {
    const answer = shapeConstraint({ kind: 'open' }, vocabularyOf());
    for (const byte of encoder.encode(said)) answer.accept(byte);
    expect(answer.closed()).toBe(closed);
  });

  test('a character that is cut in the middle is left out', () => {
    const answer = shapeConstraint({ kind: 'open' }, vocabularyOf());
    for (const byte of encoder.encode('{"a":"x😀').subarray(0, -1)) answer.accept(byte);
    expect(answer.text()).toBe('{"a":"x');
    expect(answer.closed()).toBe('{"a":"x"}');
  });
});

test('a fork goes its own way', () => {
  const answer = taskGrammar(decide(), vocabulary).constraint();
  say(answer, 'ab');
  const fork = answer.fork();
  say(answer, 'c"');
  say(fork, 'd');
  expect([answer.text(), fork.text()]).toEqual(['{"value":"abc"}', '{"value":"abd']);
});

test('keys come in the order sent, whatever they are', () => {
  const keys = ['b', '10', '__proto__', '2'];
  expect(taskGrammar(extract({ kind: 'keys', keys }), vocabulary).unsettled).toBe(
    '{"b":null,"10":null,"__proto__":null,"2":null}',
  );
});

test('keys select among the properties of a schema and order them', () => {
  const shape: AnswerShape = {
    kind: 'schema',
    schema: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { const: 1 }, c: { const: null } },
      required: ['a'],
    },
    keys: ['c', 'b'],
  };
  const answer = shapeConstraint(shape, vocabulary);
  answer.takeForced();
  expect([answer.text(), answer.complete]).toEqual(['{"c":null,"b":1}', true]);
});

describe('a string that only repeats itself', () => {
  /** Returns the answer to one string field, cut after this text. */
  function writing(text: string, field: JsonSchema = { type: 'string' }): Constraint {
    const properties = { a: field, b: { type: 'string' } };
    const schema = { type: 'object', properties, required: ['a', 'b'], additionalProperties: false };
    const answer = shapeConstraint({ kind: 'schema', schema }, vocabulary);
    answer.takeForced();
    say(answer, text);
    return answer;
  }
  const closing = { words: ['","'], bytes: '"' };

  test.each([
    ['one letter', 'a'.repeat(64)],
    ['a phrase after other text', `The parcel came late. ${'money back. '.repeat(8)}`],
  ])('may only be closed: %s', (_, text) => {
    const answer = writing(text);
    expect(allowed(answer)).toEqual(closing);
    expect(allowed(answer.fork())).toEqual(closing);
    say(answer, '"');
    say(answer, 'fine"');
    expect(JSON.parse(answer.text())).toEqual({ a: text, b: 'fine' });
  });

  test.each<[string, string, JsonSchema?]>([
    ['fewer repeats', 'a'.repeat(63)],
    ['more than repeats', 'The quick brown fox jumps over the lazy dog while 9 wizards hex 37 gymnasts.'],
    ['a length that is not reached', 'a'.repeat(80), { type: 'string', minLength: 100 }],
    ['an open escape', `${'a'.repeat(64)}\\`],
    // The quote after a comma is forced.
    ['the next string of a list', `"${'a'.repeat(70)}",`, { type: 'array', items: { type: 'string' } }],
    ['many equal strings of a list', `"${'yes",'.repeat(20)}`, { type: 'array', items: { type: 'string' } }],
  ])('may go on: %s', (_, text, field) => {
    expect(allowed(writing(text, field)).bytes).toMatch(/[a-z]/);
  });
});

test('a token that is not allowed is refused, and the state is as before', () => {
  const answer = taskGrammar(decide(), vocabulary).constraint();
  expect(() => answer.accept('\n'.charCodeAt(0))).toThrow(RangeError);
  expect(() => answer.accept(vocabulary.size - 1)).toThrow(RangeError);
  say(answer, 'ok"');
  expect(answer.text()).toBe('{"value":"ok"}');
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  answer.mask(mask);
  expect(mask.reduce((sum, word) => sum + (word === 0 ? 0 : 1), 0)).toBe(1);
});

test('a vocabulary that lacks a needed byte is a clear error', () => {
  const poor: Vocabulary = {
    size: 2,
    bytes: (token) => (token === 0 ? Uint8Array.of(0x61) : null),
    encode: () => [0],
    end: new Set([1]),
  };
  expect(() => shapeConstraint({ kind: 'open' }, poor).takeForced()).toThrow(
    expect.objectContaining({ code: 'engine_failed' }),
  );
});
