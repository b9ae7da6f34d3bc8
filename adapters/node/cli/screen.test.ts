import { expect, it } from 'vitest';
import { shown, table } from './screen.ts';

it.each([
  ['plain, äöü 漢字 🙂\n\tok', 'plain, äöü 漢字 🙂\n\tok'],
  ['\u001b[31mred\u001b[0m', 'red'],
  ['\u001b]0;title\u0007x', 'x'],
  ['\u001b]52;c;aGk=\u0007x', 'x'],
  ['a\u0008\u0007\rb', 'ab'],
])('%j on a terminal is %j', (text, expected) => {
  expect(shown(text, { isTTY: true })).toBe(expected);
  expect(shown(text, { isTTY: false })).toBe(text);
});

it('a table has its columns aligned and no spaces at the ends', () => {
  expect(
    table([
      ['A', 'B'],
      ['long', ''],
      ['x', 'y'],
    ]),
  ).toBe('A     B\nlong\nx     y');
  expect(table([])).toBe('');
});
