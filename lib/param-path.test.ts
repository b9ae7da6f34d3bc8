import { expect, test } from 'vitest';
import { pathTo } from './param-path.ts';

test.each<[(string | number)[], string]>([
  [['tasks', 2, 'options', 0], 'tasks[2].options[0]'],
  [['__proto__'], '__proto__'],
  [['a b'], '["a b"]'],
  [['tasks', 0, '10'], 'tasks[0]["10"]'],
  [['a', ''], 'a[""]'],
  [['a', '"\\'], 'a["\\"\\\\"]'],
  [['x'.repeat(64)], 'x'.repeat(64)],
  [['x'.repeat(65)], `["${'x'.repeat(64)}…"]`],
  [[`${'x'.repeat(63)}😀`], `["${'x'.repeat(63)}\u{fffd}…"]`],
])('%j', (steps, path) => {
  expect(steps.reduce<string>(pathTo, '')).toBe(path);
});
