import { describe, expect, test } from 'vitest';
import { leavesOf } from './leaves.ts';

describe('leavesOf', () => {
  test.each<[string, string, [path: string, written: string][]]>([
    ['a single value', ' 1.50 ', [['', '1.50']]],
    ['nothing in an empty object', '{ }', []],
    ['nothing in an empty list', '{"a":[]}', []],
    [
      'members in the order written',
      '{"b":"x","10":null}',
      [
        ['/b', '"x"'],
        ['/10', 'null'],
      ],
    ],
    [
      'lists and objects inside',
      '{"lines" : [ {"sku":"A","qty":2}, {"sku":"B"} ],"paid":true}',
      [
        ['/lines/0/sku', '"A"'],
        ['/lines/0/qty', '2'],
        ['/lines/1/sku', '"B"'],
        ['/paid', 'true'],
      ],
    ],
    ['structure inside strings', '{"a":"}],{\\"x\\":1"}', [['/a', '"}],{\\"x\\":1"']]],
    ['names that a pointer escapes', '{"a/b~c":1}', [['/a~1b~0c', '1']]],
    ['escaped names', '{"\\u0061":1}', [['/a', '1']]],
  ])('%s', (_, text, expected) => {
    expect(leavesOf(text).map(({ path, start, end }) => [path, text.slice(start, end)])).toEqual(expected);
  });
});
