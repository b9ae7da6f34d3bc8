import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAsWritten, stringifyAsWritten, writtenNumber } from './written-numbers.ts';

test.each([
  ['{"id":9007199254740993}', 'id', '9007199254740993'],
  ['{"id":-9007199254740993}', 'id', '-9007199254740993'],
  ['{"id":18446744073709551615}', 'id', '18446744073709551615'],
  ['{"__proto__":9007199254740993}', '__proto__', '9007199254740993'],
  ['[0,9007199254740993]', '1', '9007199254740993'],
  ['{"id":1,"id":9007199254740993}', 'id', '9007199254740993'],
  ['{"id":9007199254740993,"id":1}', 'id', undefined],
  ['{"id":9007199254740991}', 'id', undefined],
  ['{"id":1234567890.1234567890123456}', 'id', '1234567890.1234567890123456'],
  ['{"id":1.0}', 'id', '1.0'],
  ['{"id":49.90}', 'id', '49.90'],
  ['{"id":49.9}', 'id', undefined],
  ['{"id":1e-05}', 'id', '1e-05'],
  ['{"id":-0}', 'id', '-0'],
  ['{"id":0.0000001}', 'id', '0.0000001'],
  ['{"id":1.0,"id":1}', 'id', undefined],
  ['{"a":[1.0],"a":[1],"id":1.0}', 'id', '1.0'],
  ['{"id":"9007199254740993"}', 'id', undefined],
  ['{"a":{"id":9007199254740993},"a":[],"id":1}', 'id', undefined],
  ['{"id":9007199254740993,"id":9007199254740992.0}', 'id', '9007199254740992.0'],
  ['{ "i\\"d" : 9007199254740993 }', 'i"d', '9007199254740993'],
  ['{"n":1000000000000000000000001}', 'n', '1000000000000000000000001'],
  ['{"id":1}', 'id', undefined],
  ['{"id":9007199254740993,"id":"x"}', 'id', undefined],
  ['{"id":9007199254740993,"id":[9007199254740993]}', 'id', undefined],
  ['{"id":9007199254740993,"id":9e3}', 'id', '9e3'],
  ['{"a":9007199254740993,"b":9007199254740995,"a":2}', 'b', '9007199254740995'],
  ['[0.12345678901234567,7,9007199254740993,1]', '2', '9007199254740993'],
  ['[0.12345678901234567,7,9007199254740993,1]', '0', '0.12345678901234567'],
  ['[0.1234567890123456,7,9007199254740993,1]', '0', undefined],
  ['[0.12345678901234567,7,9007199254740993,1]', '3', undefined],
])('%s', (text, key, digits) => {
  const value = parseAsWritten(text);
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
    expect(stringifyAsWritten(parseAsWritten(text))).toBe(text);
  });

  test('a deeply nested list in one line is hardly longer than its source', () => {
    const text = `${'{"a":'.repeat(57)}[${Array(1000).fill('1').join()}]${'}'.repeat(57)}`;
    const { length } = stringifyAsWritten(parseAsWritten(text), true);
    expect(length).toBeLessThan(2 * text.length);
  });

  test.each([
    ['{ "b":1.0,\n"10":[2.50,{}],  "1":"a:b,c" }', '{"b": 1.0, "10": [2.50, {}], "1": "a:b,c"}'],
    ['{"a":{"x":1,"1":2},"a":{"y":1.0,"c":[]}}', '{"a": {"y": 1.0, "c": []}}'],
    ['{"2":1,"a":2,"2":3.0}', '{"2": 3.0, "a": 2}'],
    ['[{"5":1,"é\\"":2,"1":3}]', '[{"5": 1, "é\\"": 2, "1": 3}]'],
  ])('%s in one line with spaces', (text, line) => {
    expect(stringifyAsWritten(parseAsWritten(text), true)).toBe(line);
  });
});

test('a repeated object does not keep the digits of the first', () => {
  const { a } = parseAsWritten('{"a":{"id":9007199254740993},"a":{"id":9007199254740992.0}}');
  expect(writtenNumber(a, 'id')).toBe('9007199254740992.0');
});

test('any JSON is parsed as JSON itself does, and written as it was', () => {
  const long = fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map((number) => `~${number}~`);
  const value = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(fc.array(fc.oneof(value, long, fc.dictionary(fc.string(), fc.oneof(value, long)))), (items) => {
      const text = JSON.stringify(items).replaceAll(/"~(-?\d+)~"(?!:)/g, '$1');
      const parsed = parseAsWritten(text);
      expect(parsed).toEqual(JSON.parse(text));
      expect(stringifyAsWritten(parsed)).toBe(text);
    }),
    { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 300) },
  );
});
