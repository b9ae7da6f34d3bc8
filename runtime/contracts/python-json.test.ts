import { describe, expect, test } from 'vitest';
import { lstrip, parsePython, pythonFloat, splitWords, strip, toJson, withIndices } from './python-json.ts';

// Expected texts are those of CPython 3.12's json.dumps, repr and str methods.
test.each([
  [
    '{"a": 1.0, "b": [1e5, 1E-7, -0.0, -0, 1e16, 123456789012345678901234567890]}',
    '{"a": 1.0, "b": [100000.0, 1e-07, -0.0, 0, 1e+16, 123456789012345678901234567890]}',
  ],
  ['{"10":1,"2":2,"a":3,"2":4}', '{"10": 1, "2": 4, "a": 3}'],
  ['[ ]', '[]'],
  ['{ "x" : { } , "y" : [ null , true,false ] }', '{"x": {}, "y": [null, true, false]}'],
  ['"Zo\\u00eb \\u2028\\t\\u007f"', '"Zoë \u2028\\t\u007f"'],
  ['0.1', '0.1'],
  ['1e400', 'Infinity'],
])('reads and writes %s', (text, expected) => {
  expect(toJson(parsePython(text))).toBe(expected);
});

test.each([
  [0, '0.0'],
  [0.0001, '0.0001'],
  [0.00001, '1e-05'],
  [123456.75, '123456.75'],
  [1e15, '1000000000000000.0'],
  [1.5e16, '1.5e+16'],
  [5e-324, '5e-324'],
  [1.7976931348623157e308, '1.7976931348623157e+308'],
  [-2.5e-10, '-2.5e-10'],
])('writes the float %d', (value, expected) => {
  expect(pythonFloat(value)).toBe(expected);
});

describe('layouts', () => {
  const value = parsePython('{"b": [1, {"c": []}], "a": "é", "\u{10000}": 0, "\uffff": 1}');
  test('indented', () => {
    expect(toJson(parsePython('{"a": [1, {}], "b": {"c": 2}}'), { indent: 2 })).toBe(
      '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": {\n    "c": 2\n  }\n}',
    );
  });
  test('compact and sorted by code points', () => {
    expect(toJson(value, { compact: true, sorted: true })).toBe('{"a":"é","b":[1,{"c":[]}],"\uffff":1,"\u{10000}":0}');
  });
  test('in ASCII', () => {
    expect(toJson(value, { ascii: true })).toBe(
      '{"b": [1, {"c": []}], "a": "\\u00e9", "\\ud800\\udc00": 0, "\\uffff": 1}',
    );
  });
});

test('long lists get the numbers of their elements', () => {
  const seven = parsePython('[1,2,3,4,5,6,7]');
  expect(withIndices(seven)).toEqual(seven);
  const eight = toJson(withIndices(parsePython('{"l":[1,{"_index":9,"a":0},3,4,5,6,7,[]]}')));
  expect(eight).toContain('{"_index": 0, "value": 1}, {"_index": 9, "a": 0}');
  expect(eight).toContain('{"_index": 7, "value": []}]');
});

test('white space is that of Python', () => {
  const text = '\u001c\u00a0 a\u0085b \n';
  expect(strip(text)).toBe('a\u0085b');
  expect(lstrip(text)).toBe('a\u0085b \n');
  expect(splitWords(text)).toEqual(['a', 'b']);
  // A byte order mark is white space in JavaScript only.
  expect(strip('\ufeffa')).toBe('\ufeffa');
});
