import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseNotingNumbers, stringifyAsWritten, writtenNumber } from './written-numbers.ts';

test.each([
  ['{"id":9007199254740993}', 'id', '9007199254740993'],
  ['{"id":-9007199254740993}', 'id', '-9007199254740993'],
  ['{"id":18446744073709551615}', 'id', '18446744073709551615'],
  ['{"__proto__":9007199254740993}', '__proto__', '9007199254740993'],
  ['[0,9007199254740993]', '1', '9007199254740993'],
  ['{"id":1,"id":9007199254740993}', 'id', '9007199254740993'],
  ['{"id":9007199254740993,"id":1}', 'id', undefined],
  ['{"id":9007199254740991}', 'id', undefined],
  ['{"id":1234567890.1234567890123456}', 'id', undefined],
  ['{"id":"9007199254740993"}', 'id', undefined],
  ['{"a":{"id":9007199254740993},"a":[],"id":1}', 'id', undefined],
  ['{"id":9007199254740993,"id":9007199254740992.0}', 'id', undefined],
  ['{ "i\\"d" : 9007199254740993 }', 'i"d', '9007199254740993'],
  ['{"n":1000000000000000000000001}', 'n', '1000000000000000000000001'],
  ['{"id":1}', 'id', undefined],
  ['{"id":9007199254740993,"id":"x"}', 'id', undefined],
  ['{"id":9007199254740993,"id":[9007199254740993]}', 'id', undefined],
  ['{"id":9007199254740993,"id":9e3}', 'id', undefined],
  ['{"a":9007199254740993,"b":9007199254740995,"a":2}', 'b', '9007199254740995'],
  ['[0.12345678901234567,7,9007199254740993,1]', '2', '9007199254740993'],
  ['[0.12345678901234567,7,9007199254740993,1]', '3', undefined],
])('%s', (text, key, digits) => {
  const value = parseNotingNumbers(text);
  expect(value).toEqual(JSON.parse(text));
  expect(writtenNumber(value, key)).toBe(digits);
});

describe('stringifyAsWritten', () => {
  test.each([
    '{"id":9007199254740993,"list":[1,[18446744073709551616],"9007199254740993"],"__proto__":{"n":-9007199254740995}}',
    '{"10":1,"a":[null,true,0.5,"é"]}',
    '{"n":1000000000000000000000001,"m":1.5e+30,"{[,":-0.25,"l":[{},[],{"n":9007199254740993}]}',
    '"9007199254740993"',
  ])('%s', (text) => {
    expect(stringifyAsWritten(parseNotingNumbers(text))).toBe(text);
  });

  test('indents', () => {
    expect(stringifyAsWritten(parseNotingNumbers('{"id":9007199254740993}'), 2)).toBe('{\n  "id": 9007199254740993\n}');
  });
});

test('a repeated object does not keep the digits of the first', () => {
  const { a } = parseNotingNumbers('{"a":{"id":9007199254740993},"a":{"id":9007199254740992.0}}');
  expect(writtenNumber(a, 'id')).toBe(undefined);
});

test('any JSON is parsed and written as JSON itself does, but for long numbers', () => {
  const long = fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map((number) => `~${number}~`);
  const value = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(fc.array(fc.oneof(value, long, fc.dictionary(fc.string(), fc.oneof(value, long)))), (items) => {
      const text = JSON.stringify(items).replaceAll(/"~(-?\d+)~"(?!:)/g, '$1');
      const parsed = parseNotingNumbers(text);
      expect(parsed).toEqual(JSON.parse(text));
      expect(stringifyAsWritten(parsed)).toBe(text);
    }),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 300) },
  );
});
