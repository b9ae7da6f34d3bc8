import { expect, test } from 'vitest';
import { difference, finder, paragraph, ratio, sentence } from './answer.ts';

const find = finder([{ bench: 'x', system: 'ours', case: '1 task', metric: 'median', value: 1234.5, unit: 'ms' }]);

test('a sentence has formatted figures, and is empty if one was not measured', () => {
  const one = find('ours', '1 task', 'median');
  const none = find('ours', '2 tasks', 'median');
  expect(sentence`One task takes ${one} ms on ${'a CPU'}.`).toBe('One task takes 1,235 ms on a CPU.');
  expect(sentence`Two take ${none} ms.`).toBe('');
  expect([ratio(one, one), ratio(none, one), difference(one, one), difference(one, none)]).toEqual([
    1,
    undefined,
    0,
    undefined,
  ]);
  expect(paragraph('A.', '', 'B.')).toBe('A. B.');
});
