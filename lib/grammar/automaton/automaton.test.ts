import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, JsonSchema } from '../../contract/answer-shape.ts';
import { compileSchema } from '../resolve/compile.ts';
import { Automaton, type State } from './automaton.ts';
import { NumberFrame } from './number-frame.ts';

/** Tells whether the answer `{"v":<text>}` can be written for a property `v` of this schema. */
function writes(schema: Json, text: string, defs: JsonSchema = {}): boolean {
  return accepts({ type: 'object', properties: { v: schema }, required: ['v'], $defs: defs }, `{"v":${text}}`);
}

function accepts(schema: JsonSchema, text: string): boolean {
  return stateAfter(schema, text)?.complete ?? false;
}

function stateAfter(schema: JsonSchema, text: string): State | null {
  let state: State | null = new Automaton(compileSchema(schema, { path: 'schema' })).start;
  for (const byte of new TextEncoder().encode(text)) state = state?.next(byte) ?? null;
  return state;
}

const T = { type: 'string' };

describe('accepted and refused values, keyword by keyword', () => {
  test.each<[string, Json, string[], string[]]>([
    [
      'type string',
      T,
      ['""', '"a"', '"é😀"', '"\\n\\t\\r\\"\\\\"', '"/"', '"\u007f"'],
      ['a', "'a'", '1', '"', '"\\/"', '"\\u0041"', '"\\u0001"', '"\n"', '"\\b"'],
    ],
    [
      'type number',
      { type: 'number' },
      ['0', '-1', '1.5', '0.001', '-0.5', '1.50', '9007199254740991'],
      ['01', '+1', '.5', '1.', '1e5', '-0', '-0.0', '9007199254740993', 'NaN', '1.2345678901234567'],
    ],
    ['type integer', { type: 'integer' }, ['0', '-12', '123'], ['1.0', '1.5', '-0', '1e2']],
    ['type boolean', { type: 'boolean' }, ['true', 'false'], ['True', '0', 'null', 'tru']],
    ['type null', { type: 'null' }, ['null'], ['"null"', '']],
    ['type list', { type: ['string', 'null', 'integer'] }, ['"a"', 'null', '3'], ['true', '1.5', '[]']],
    [
      'true',
      true,
      ['1', '"a"', 'null', '[]', '[1,{"a":[]}]', '{"a":1,"b":2}'],
      ['{"a":1,"a":2}', '[1,]', '{a:1}', ' 1'],
    ],
    ['minLength counts characters', { ...T, minLength: 2 }, ['"ab"', '"😀😀"', '"\\n\\n"'], ['"😀"', '"\\n"', '""']],
    ['maxLength counts characters', { ...T, maxLength: 2 }, ['""', '"😀😀"', '"\\"\\""'], ['"abc"', '"é é"']],
    ['pattern sees what is meant', { ...T, pattern: '^[\\n"é]$' }, ['"\\n"', '"\\""', '"é"'], ['"n"', '"a"', '""']],
    ['pattern is a search', { ...T, pattern: 'b' }, ['"abc"', '"b"'], ['"ac"', '""']],
    [
      'pattern and lengths',
      { ...T, pattern: '^(ab)+$', minLength: 3, maxLength: 5 },
      ['"abab"'],
      ['"ab"', '"ababab"', '"abc"'],
    ],
    ['format', { ...T, format: 'date' }, ['"2024-02-29"'], ['"2023-02-29"', '"2024-2-9"']],
    ['minimum', { type: 'number', minimum: 1.5 }, ['1.5', '2', '10'], ['1.4', '1', '-2', '0']],
    ['maximum', { type: 'integer', maximum: -5 }, ['-5', '-50'], ['-4', '0', '5']],
    [
      'exclusive bounds',
      { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      ['0.5', '0.00000000001', '0.9'],
      ['0', '1', '1.0', '0.0', '-0.5'],
    ],
    ['multipleOf in decimals', { type: 'number', multipleOf: 0.01 }, ['0.07', '1.1', '3', '-2.25'], ['0.005', '1.001']],
    [
      'multipleOf of large steps',
      { type: 'integer', multipleOf: 7, minimum: 100, maximum: 105 },
      ['105'],
      ['100', '98', '112'],
    ],
    [
      'a huge step',
      { type: 'number', multipleOf: 1e15 },
      ['0', '1000000000000000', '-3000000000000000'],
      ['1', '1000000000000001'],
    ],
    [
      'enum',
      { enum: ['a', 'ab', 1, 12, null, { x: [1] }] },
      ['"a"', '"ab"', '1', '12', 'null', '{"x":[1]}'],
      ['"b"', '2', '{"x":[ 1]}', '{}'],
    ],
    ['enum and other keywords', { enum: [1, 5, 'a', 'abc'], type: 'string', minLength: 2 }, ['"abc"'], ['"a"', '5']],
    ['const', { const: 'é"' }, ['"é\\""'], ['"é"']],
    ['const with a control character', { const: '\u0001' }, ['"\\u0001"'], ['"\u0001"']],
    [
      'items',
      { type: 'array', items: { type: 'integer' } },
      ['[]', '[1]', '[1,2,3]'],
      ['["a"]', '[1,]', '[,1]', '[1 ,2]'],
    ],
    [
      'minItems and maxItems',
      { type: 'array', items: T, minItems: 1, maxItems: 2 },
      ['["a"]', '["a","b"]'],
      ['[]', '["a","b","c"]'],
    ],
    [
      'prefixItems',
      { type: 'array', prefixItems: [T, { type: 'integer' }] },
      ['[]', '["a"]', '["a",1]'],
      ['[1]', '["a",1,2]'],
    ],
    [
      'prefixItems and items',
      { type: 'array', prefixItems: [T], items: { type: 'null' } },
      ['["a",null,null]'],
      ['["a",1]', '[null]'],
    ],
    ['items false', { type: 'array', prefixItems: [T], items: false, minItems: 1 }, ['["a"]'], ['[]', '["a","b"]']],
    ['anyOf', { anyOf: [T, { type: 'integer', minimum: 5 }] }, ['"a"', '5'], ['4', 'null']],
    [
      'anyOf of objects alike',
      {
        anyOf: [
          { type: 'object', properties: { k: { const: 1 } }, required: ['k'] },
          { type: 'object', properties: { k: { const: 12 }, z: T }, required: ['k', 'z'] },
        ],
      },
      ['{"k":1}', '{"k":12,"z":"a"}'],
      ['{"k":12}', '{"k":1,"z":"a"}'],
    ],
    [
      'anyOf with a value that another branch allows but does not generate',
      { anyOf: [{ maxLength: 3 }, { enum: [null, true] }] },
      ['"abc"', 'null', 'true'],
      ['"abcd"', 'false', '1'],
    ],
    ['oneOf apart', { oneOf: [T, { type: 'null' }] }, ['"a"', 'null'], ['1']],
    [
      'oneOf of numbers',
      {
        oneOf: [
          { type: 'integer', multipleOf: 3 },
          { type: 'integer', multipleOf: 5 },
        ],
      },
      ['3', '5', '10', '18'],
      ['15', '0', '30', '1', '-15'],
    ],
    [
      'oneOf of integer and number',
      { oneOf: [{ type: 'integer' }, { type: 'number' }] },
      ['1.5', '-0.25'],
      ['1', '1.0', '0'],
    ],
    [
      'oneOf of texts',
      {
        oneOf: [
          { ...T, minLength: 2 },
          { ...T, maxLength: 3 },
        ],
      },
      ['""', '"a"', '"abcd"'],
      ['"ab"', '"abc"'],
    ],
    [
      'oneOf of a text and a value',
      { oneOf: [{ ...T, pattern: '^[ab]+$' }, { const: 'ab' }, { const: 7 }] },
      ['"a"', '"abb"', '7'],
      ['"ab"', '"c"'],
    ],
    [
      'allOf',
      { allOf: [{ ...T, minLength: 2 }, { pattern: '^a' }, { maxLength: 3 }] },
      ['"ab"', '"abc"'],
      ['"a"', '"abcd"', '"bc"'],
    ],
    [
      'allOf of objects',
      {
        allOf: [
          { properties: { a: T }, required: ['a'] },
          { properties: { a: { minLength: 2 }, b: { type: 'null' } } },
        ],
      },
      ['{"a":"xx"}', '{"a":"xx","b":null}'],
      ['{"a":"x"}', '{"b":null}'],
    ],
    ['no type named, one meant', { minLength: 1 }, ['"a"'], ['1', '""']],
  ])('%s', (_, schema, good, bad) => {
    for (const text of good) expect([text, writes(schema, text)]).toEqual([text, true]);
    for (const text of bad) expect([text, writes(schema, text)]).toEqual([text, false]);
  });
});

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more });

describe('objects', () => {
  const ab = { a: { type: 'integer' }, b: { type: 'integer' }, ab: { type: 'integer' } };
  test.each<[string, JsonSchema, string[], string[]]>([
    [
      'members come in the order sent',
      object(ab),
      ['{}', '{"a":1}', '{"a":1,"b":2,"ab":3}', '{"b":1,"ab":2}', '{"ab":1}'],
      ['{"b":1,"a":2}', '{"c":1}', '{"a":1,"a":2}', '{"a":1,}', '{,"a":1}'],
    ],
    [
      'required',
      object(ab, { required: ['b'] }),
      ['{"b":1}', '{"a":1,"b":2}', '{"b":1,"ab":2}'],
      ['{}', '{"a":1}', '{"ab":1}'],
    ],
    [
      'required but not declared',
      { type: 'object', properties: { a: T }, required: ['z'] },
      ['{"z":1}', '{"a":"","z":[]}'],
      ['{}', '{"a":""}'],
    ],
    ['additionalProperties false', object({ a: T }, { additionalProperties: false }), ['{}', '{"a":""}'], ['{"b":1}']],
    [
      'additionalProperties as a schema',
      object({ a: T }, { additionalProperties: { type: 'integer' } }),
      ['{"a":"","b":1,"c":2}', '{"b":1}', '{"aa":1}'],
      ['{"b":""}', '{"b":1,"b":2}', '{"b":1,"a":""}', '{"":1}', '{"a":1}'],
    ],
    [
      'names that look alike',
      object({ '': T, a: T, '"': T, é: T, __proto__x: T }),
      ['{"":"","a":"","\\"":"","é":"","__proto__x":""}'],
      ['{"\\u0022":""}'],
    ],
    [
      'a name __proto__',
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"null"}},"required":["__proto__"]}'),
      ['{"__proto__":null}'],
      ['{}'],
    ],
    [
      'no open name twice',
      { type: 'object' },
      ['{}', '{"a":1,"b":{"a":1}}', '{"a":1,"aa":1,"b":1}'],
      ['{"a":1,"b":2,"a":3}', '{"x":{"a":1,"a":2}}'],
    ],
    [
      'a reference inside a schema with an $id begins there',
      {
        ...object({
          a: { $id: 'a', $defs: { s: { type: 'integer' } }, type: ['integer', 'array'], items: { $ref: '#/$defs/s' } },
          b: { $ref: '#/properties/a/$defs/s' },
        }),
        $defs: { s: T },
      },
      ['{"a":[1],"b":2}'],
      ['{"a":["x"]}', '{"b":"x"}'],
    ],
    ['a property that nothing satisfies is left out', object({ a: false, b: T }), ['{"b":""}', '{}'], ['{"a":1}']],
  ])('%s', (_, schema, good, bad) => {
    for (const text of good) expect([text, accepts(schema, text)]).toEqual([text, true]);
    for (const text of bad) expect([text, accepts(schema, text)]).toEqual([text, false]);
  });

  test('recursion ends at the greatest depth', () => {
    const tree = { ...object({ c: { type: 'array', items: { $ref: '#' } } }), required: ['c'] };
    const nested = (depth: number): string => (depth === 0 ? '{"c":[]}' : `{"c":[${nested(depth - 1)}]}`);
    expect(accepts(tree, nested(15))).toBe(true);
    expect(accepts(tree, nested(16))).toBe(false);
  });
});

describe('oneOf with overlapping branches is refused', () => {
  test.each<[string, Json[]]>([
    ['optional members only', [object({ a: T }), object({ b: T })]],
    [
      'open objects',
      [object({ a: T }, { required: ['a'] }), object({ b: T }, { required: ['b'], additionalProperties: true })],
    ],
    [
      'lists that may both be empty',
      [
        { type: 'array', items: T },
        { type: 'array', items: { type: 'null' } },
      ],
    ],
    ['any object', [object({ a: T }), true]],
  ])('%s', (_, oneOf) => {
    expect(() => writes({ oneOf }, '{}')).toThrow(expect.objectContaining({ code: 'unsupported_schema' }));
  });

  test.each<[string, Json[], string]>([
    [
      'a required member',
      [object({ k: { const: 1 } }, { required: ['k'] }), object({ k: { const: 2 } }, { required: ['k'] })],
      '{"k":2}',
    ],
    [
      'a member only one has',
      [object({ a: T }, { required: ['a'] }), object({ b: T }, { required: ['b'] })],
      '{"b":""}',
    ],
    [
      'lengths of lists',
      [
        { type: 'array', items: T, maxItems: 1 },
        { type: 'array', items: T, minItems: 2 },
      ],
      '["a","b"]',
    ],
    [
      'first items',
      [
        { type: 'array', items: T, minItems: 1 },
        { type: 'array', items: { type: 'null' }, minItems: 1 },
      ],
      '[null]',
    ],
  ])('but not with %s', (_, oneOf, text) => {
    expect(writes({ oneOf }, text)).toBe(true);
  });
});

describe('alternatives that begin alike share the work on their numbers', () => {
  const lists = (count: number, items: (i: number) => JsonSchema): JsonSchema =>
    object({
      v: { anyOf: Array.from({ length: count }, (_, i) => ({ type: 'array', items: items(i), title: `t${i}` })) },
    });
  const numbersAfter = (schema: JsonSchema): { frames: number; rules: number } => {
    const frames = stateAfter(schema, '{"v":[1')?.frames.filter((frame) => frame instanceof NumberFrame) ?? [];
    return { frames: frames.length, rules: new Set(frames.map(({ language }) => language)).size };
  };

  test('equal rules are one', () => {
    expect(numbersAfter(lists(100, () => ({ type: 'integer', maximum: 20 })))).toEqual({ frames: 100, rules: 1 });
  });

  test('the first 16 different rules are kept', () => {
    expect(numbersAfter(lists(100, (i) => ({ type: 'integer', maximum: 20 + i })))).toEqual({ frames: 16, rules: 16 });
  });
});

test('a part that nothing satisfies is refused at its path', () => {
  const schemas: [Json, string][] = [
    [{ type: 'string', minLength: 3, maxLength: 2 }, 'schema.properties.v'],
    [{ type: 'integer', minimum: 1.2, maximum: 1.8 }, 'schema.properties.v'],
    [{ enum: ['a'], type: 'integer' }, 'schema.properties.v'],
    [{ type: 'string', pattern: '^a', format: 'ipv4' }, 'schema.properties.v'],
    [{ type: 'array', minItems: 2, maxItems: 1 }, 'schema.properties.v'],
    [{ type: 'array', minItems: 1, items: false }, 'schema.properties.v'],
    [{ type: 'array', minItems: 1e9, items: { const: 1 } }, 'schema.properties.v'],
    [{ allOf: [{ type: 'string' }, { type: 'null' }] }, 'schema.properties.v'],
    [{ type: 'integer', minimum: 1e17 }, 'schema.properties.v'],
    [{ type: 'object', properties: { w: false }, required: ['w'] }, 'schema.properties.v.properties.w'],
    [{ type: 'string', pattern: '\\x01' }, 'schema.properties.v'],
    [{ $ref: '#' }, 'schema.properties.v.properties.v'],
  ];
  for (const [schema, param] of schemas) {
    expect(() => writes(schema, '1'), JSON.stringify(schema)).toThrow(
      expect.objectContaining({ code: 'unsupported_schema', param }),
    );
  }
});

test('every state can continue, and a forced byte is the only one that can come next', () => {
  const values: Json[] = [
    T,
    { type: 'number', minimum: 100, maximum: 199 },
    { format: 'date-time' },
    { pattern: '^(Köln|Kölsch)$' },
    { enum: ['ab', 'abc'] },
    true,
  ];
  const shapes = fc.record({ a: fc.constantFrom(...values), b: fc.constantFrom(...values) });
  fc.assert(
    fc.property(shapes, fc.array(fc.nat(1e9), { minLength: 60, maxLength: 60 }), (properties, picks) => {
      let state = new Automaton(compileSchema({ type: 'object', properties, required: ['b'] }, { path: 'schema' }))
        .start;
      for (const pick of picks) {
        if (state.complete) return;
        const possible = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => state.next(byte) !== null);
        expect(possible.length).toBeGreaterThan(0);
        if (state.forced >= 0) expect(possible).toEqual([state.forced]);
        else expect(possible.length).toBeGreaterThan(1);
        state = state.next(possible[pick % possible.length]!)!;
      }
    }),
    { numRuns: 100 },
  );
});
