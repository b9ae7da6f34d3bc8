import fc from 'fast-check';
import { expect, it } from 'vitest';
import { indented } from './extract.ts';

it.each([
  ['{"10":1.50,"2":{"b":[],"a":{}}}', '{\n  "10": 1.50,\n  "2": {\n    "b": [],\n    "a": {}\n  }\n}'],
  [' [ 1 , "a, b" , [ null ] ] ', '[\n  1,\n  "a, b",\n  [\n    null\n  ]\n]'],
  ['12345678901234567890', '12345678901234567890'],
])('%j', (text, expected) => {
  expect(indented(text)).toBe(expected);
});

it('formats any other JSON as JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(indented(JSON.stringify(value))).toBe(JSON.stringify(JSON.parse(JSON.stringify(value)), null, 2));
    }),
  );
});
