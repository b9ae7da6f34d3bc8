import { expect, test } from 'vitest';
import { selectedLabels, withUnsure } from './question-answers.ts';

test.each([
  ['at the threshold', [0.9, 0.5, 0.1], {}, [0, 1], 0.9 * 0.5 * 0.9],
  ['none', [0.4, 0.1], {}, [], 0.6 * 0.9],
  ['min adds the likeliest', [0.1, 0.4], { min: 1 }, [1], 0.9 * 0.4],
  ['max keeps the likeliest', [0.6, 0.9, 0.8], { max: 2 }, [1, 2], 0.4 * 0.9 * 0.8],
  ['ties keep the order sent', [0.9, 0.9, 0.9], { max: 1 }, [0], 0.9 * 0.1 * 0.1],
  ['another threshold', [0.6, 0.9], { threshold: 0.7 }, [1], 0.4 * 0.9],
  ['max of none', [0.9], { max: 0 }, [], 0.1],
])('labels: %s', (_, probabilities, selection, selected, confidence) => {
  const found = selectedLabels(probabilities, selection);
  expect(found.selected).toEqual(selected);
  expect(found.confidence).toBeCloseTo(confidence, 12);
});

test('unsure adds an option that differs from the others, and asks without the criteria as they were sent', () => {
  const task = { type: 'decide', name: 'a', question: '?', options: ['not stated', 'b'], kind: 'score' } as const;
  const sent = { id: 'x', instructions: '"?"', criteria: '["not stated","b"]' };
  expect(withUnsure({ ...task, sent }, 'Nobody says')).toEqual({
    ...task,
    kind: 'choice',
    options: ['not stated', 'b', '(not stated)'],
    descriptions: [null, null, 'Nobody says'],
    sent: { id: 'x', instructions: '"?"' },
    unsure: true,
  });
  expect(withUnsure(task, false)).toBe(task);
});
