import { describe, expect, test } from 'vitest';
import { parseJson } from './parse.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('accepted', () => {
  test.each<[string, Uint8Array, unknown]>([
    ['a byte order mark is skipped', new Uint8Array([0xef, 0xbb, 0xbf, ...bytes('{"a":1}')]), { a: 1 }],
    ['of a repeated key the last counts', bytes('{"a":1,"a":2}'), { a: 2 }],
    ['brackets in strings do not nest', bytes(JSON.stringify({ a: '['.repeat(500) })), { a: '['.repeat(500) }],
    ['escaped quotes do not end a string', bytes('{"a\\\\\\"[":"\\\\"}'), { 'a\\"[': '\\' }],
    ['a whole surrogate pair', bytes('"\\ud83d\\ude00"'), '😀'],
    ['pairs and other escapes in a row', bytes('"\\\\\\ud83d\\uDE00\\n\\ud83d\\ude00"'), '\\😀\n😀'],
    ['an escaped backslash before ud800', bytes('"\\\\ud800"'), '\\ud800'],
    ['a number too large for a double', bytes('1e999'), Number.POSITIVE_INFINITY],
    ['any value at the root', bytes('null'), null],
  ])('%s', (_, input, value) => {
    expect(parseJson(input)).toEqual(value);
  });

  test('250,000 members and items', () => {
    expect(parseJson(bytes(`[${'1,'.repeat(249_999)}1]`))).toHaveLength(250_000);
    expect(() => parseJson(bytes(`[${'1,'.repeat(250_000)}1]`))).toThrow(
      expect.objectContaining({ code: 'request_too_large', message: expect.stringContaining('250000') }),
    );
    expect(parseJson(bytes(`"${',[{'.repeat(200_000)}"`))).toHaveLength(600_000);
  });

  test('64 levels', () => {
    expect(JSON.stringify(parseJson(bytes(nested(64))))).toBe(nested(64));
  });

  test('__proto__ is a key like any other', () => {
    const value = parseJson(bytes('{"__proto__":{"x":1}}'));
    expect(Object.keys(value as object)).toEqual(['__proto__']);
    expect((value as { x?: number }).x).toBeUndefined();
  });
});

describe('malformed_json', () => {
  test.each<[string, Uint8Array, RegExp]>([
    ['empty', bytes(''), /empty/],
    ['only a byte order mark', new Uint8Array([0xef, 0xbb, 0xbf]), /not valid JSON/],
    ['an invalid byte', new Uint8Array([0x22, 0xff, 0x22]), /UTF-8/],
    ['a cut character', new Uint8Array([0x22, 0xc3, 0x22]), /UTF-8/],
    ['an overlong encoding', new Uint8Array([0x22, 0xc0, 0xaf, 0x22]), /UTF-8/],
    ['an encoded surrogate', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), /UTF-8/],
    ['UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]), /UTF-8/],
    ['half a surrogate pair', bytes('"\\ud83d"'), /surrogate/],
    ['the second half alone', bytes('{"a":"x\\uDE00"}'), /surrogate/],
    ['a half behind a pair', bytes('"\\ud83d\\ude00\\ud83d"'), /surrogate/],
    ['two first halves', bytes('"\\ud83d\\ud83d\\ude00"'), /surrogate/],
    ['65 levels', bytes(nested(65)), /64/],
    ['65 levels of objects', bytes(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`), /64/],
    ['100,000 levels', bytes(nested(100_000)), /64/],
    ['10 million levels that never close', bytes('[{"a":'.repeat(5_000_000)), /64/],
    ['a comment', bytes('{} // x'), /not valid JSON/],
    ['a trailing comma', bytes('{"a":1,}'), /line 1, column 8/],
    ['a single quote', bytes("{'a':1}"), /not valid JSON/],
    ['NaN', bytes('{"a":NaN}'), /not valid JSON/],
    ['a leading zero', bytes('01'), /not valid JSON/],
    ['an unclosed string', bytes('{"a":"'), /not valid JSON/],
    ['two values', bytes('{}{}'), /not valid JSON/],
    ['a raw line break in a string', bytes('"a\nb"'), /not valid JSON/],
  ])('%s', (_, input, message) => {
    expect(() => parseJson(input)).toThrow(expect.objectContaining({ code: 'malformed_json' }));
    expect(() => parseJson(input)).toThrow(message);
  });

  test('the message does not quote the body', () => {
    expect(() => parseJson(bytes('secret'))).toThrow(/^(?!.*secret)/);
  });
});
