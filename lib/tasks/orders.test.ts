import { describe, expect, test } from 'vitest';
import { orderings, reordered } from './orders.ts';

describe('orderings', () => {
  test.each([
    [1, 1, [[0]]],
    [1, 5, [[0]]],
    [3, 1, [[0, 1, 2]]],
    [
      2,
      9,
      [
        [0, 1],
        [1, 0],
      ],
    ],
    [
      4,
      2,
      [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
      ],
    ],
    [
      4,
      3,
      [
        [0, 1, 2, 3],
        [1, 2, 3, 0],
        [2, 3, 0, 1],
      ],
    ],
    [
      3,
      255,
      [
        [0, 1, 2],
        [1, 2, 0],
        [2, 0, 1],
      ],
    ],
  ])('%i options in %i orders', (options, orders, expected) => {
    expect(orderings(options, orders)).toEqual(expected);
  });
});

test('a reordered task keeps each description with its option', () => {
  const task = {
    type: 'decide',
    name: 't',
    question: '?',
    options: ['a', 'b', 'c'],
    descriptions: ['A', null, 'C'],
  } as const;
  expect(reordered(task, [2, 0, 1])).toEqual({ ...task, options: ['c', 'a', 'b'], descriptions: ['C', 'A', null] });
});
