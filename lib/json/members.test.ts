import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinMembers, splitMembers } from './members.ts';

describe('splitMembers', () => {
  test.each<[string, string, [string, string][]]>([
    ['empty', ' { } ', []],
    [
      'the order sent, also of numbers',
      '{"b":1,"10":2,"1":3}',
      [
        ['b', '1'],
        ['10', '2'],
        ['1', '3'],
      ],
    ],
    [
      'names of the prototype',
      '{"__proto__":{},"constructor":null}',
      [
        ['__proto__', '{}'],
        ['constructor', 'null'],
      ],
    ],
    [
      'structure inside strings',
      '{"a":"}],{\\"", "b" : [ 1 , {"c":","} ] }',
      [
        ['a', '"}],{\\""'],
        ['b', '[ 1 , {"c":","} ]'],
      ],
    ],
    ['escaped names', '{"\\u0061\\"":true}', [['a"', 'true']]],
    ['raw numbers are kept', '{"a":1.50e+2}', [['a', '1.50e+2']]],
    [
      'of a repeated name the last value',
      '{"a":1,"b":2,"a":3}',
      [
        ['a', '3'],
        ['b', '2'],
      ],
    ],
  ])('%s', (_, text, members) => {
    expect([...splitMembers(text)]).toEqual(members);
  });

  test.each(['', '[]', 'null', '"a"', '{"a":1', '{"a" 1}', '{}{}'])('not one object: %s', (text) => {
    expect(() => splitMembers(text)).toThrow(SyntaxError);
  });

  test('any JSON object comes back the same', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), fc.nat(3), (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        expect(JSON.parse(joinMembers(splitMembers(text)))).toEqual(JSON.parse(text));
        expect([...splitMembers(text).keys()]).toEqual(Object.keys(object));
      }),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });
});

describe('joinMembers', () => {
  test.each<[string, [string, string][], string]>([
    ['none', [], '{}'],
    [
      'the order given',
      [
        ['10', '1'],
        ['a', '2'],
        ['1', '3'],
      ],
      '{"10":1,"a":2,"1":3}',
    ],
    ['names of the prototype', [['__proto__', '{"value":"x"}']], '{"__proto__":{"value":"x"}}'],
    ['names that need escapes', [['"\\\n', 'null']], '{"\\"\\\\\\n":null}'],
  ])('%s', (_, members, text) => {
    expect(joinMembers(members)).toBe(text);
  });
});
