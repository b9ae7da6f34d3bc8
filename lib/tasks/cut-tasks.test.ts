import { describe, expect, test } from 'vitest';
import { cutTasksText, readCutTasks } from './cut-tasks.ts';

const long = (count: number) => Array.from({ length: count }, (_, i) => `${i}`.padEnd(64, 'x'));

describe('the header', () => {
  test.each([
    [{ names: ['a'], more: 0 }, 'a'],
    [{ names: ['a', '10', '__proto__', 'x.y-z'], more: 0 }, 'a, 10, __proto__, x.y-z'],
    [{ names: ['a'], more: 12 }, 'a, +12'],
  ])('%j is %s', (cut, text) => {
    expect(cutTasksText(cut)).toBe(text);
    expect(readCutTasks(text, cut.names)).toEqual(cut);
  });

  test('has at most 2,048 characters, and counts the names that do not fit', () => {
    const names = long(256);
    const text = cutTasksText({ names, more: 0 });
    expect(text.length).toBeLessThanOrEqual(2048);
    expect(text.length).toBeGreaterThan(2048 - 70);
    const read = readCutTasks(text, names)!;
    expect(read.names).toEqual(names.slice(0, read.names.length));
    expect(read.names.length + read.more).toBe(256);
    // An edge passes on the value of its upstream.
    expect(cutTasksText(read)).toBe(text);
  });
});

test.each([null, '', 'b', 'a,b', 'a, +0', 'a, +1000', '+1, a', 'a, '])(
  '%j of a box is no list of cut tasks',
  (text) => {
    expect(readCutTasks(text, ['a'])).toBeUndefined();
  },
);
