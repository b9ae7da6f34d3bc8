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
  ['{"id":1}', 'id', undefined],
])('%s', (text, key, digits) => {
  const value = parseNotingNumbers(text);
  expect(value).toEqual(JSON.parse(text));
  expect(writtenNumber(value, key)).toBe(digits);
});

describe('stringifyAsWritten', () => {
  test.each([
    '{"id":9007199254740993,"list":[1,[18446744073709551616],"9007199254740993"],"__proto__":{"n":-9007199254740995}}',
    '{"10":1,"a":[null,true,0.5,"é"]}',
    '"9007199254740993"',
  ])('%s', (text) => {
    expect(stringifyAsWritten(parseNotingNumbers(text))).toBe(text);
  });

  test('indents', () => {
    expect(stringifyAsWritten(parseNotingNumbers('{"id":9007199254740993}'), 2)).toBe('{\n  "id": 9007199254740993\n}');
  });
});
