import { describe, expect, test } from 'vitest';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { fieldProbabilities } from './task-job.ts';

/** Returns a constraint that has written `text`, and closes it to `closed`. */
const written = (text: string, closed = text) => ({ text: () => text, closed: () => closed }) as Constraint;

/** Returns a choice that wrote the bytes from `start` to `end` with this probability. */
const chose = (start: number, end: number, probability: number) => ({ start, end, logprob: Math.log(probability) });

describe('fieldProbabilities', () => {
  test.each<[string, Constraint, ReturnType<typeof chose>[], [path: string, probability: number][]]>([
    [
      'the product of the tokens of each value',
      written('{"a":"xy","b":null}'),
      [chose(5, 7, 0.5), chose(7, 9, 0.5), chose(14, 18, 0.9)],
      [
        ['/a', 0.25],
        ['/b', 0.9],
      ],
    ],
    [
      'a token that begins before its value belongs to it',
      written('{"a":"xy"}'),
      [chose(3, 6, 0.5), chose(6, 8, 0.5), chose(8, 10, 0.5)],
      [['/a', 0.125]],
    ],
    [
      'structure belongs to no value',
      written('{"a":[1,2]}'),
      [chose(6, 7, 0.5), chose(7, 8, 0.1), chose(8, 9, 0.5), chose(9, 10, 0.1)],
      [
        ['/a/0', 0.5],
        ['/a/1', 0.5],
      ],
    ],
    ['what is forced is certain', written('{"a":"x"}'), [], [['/a', 1]]],
    [
      'bytes are counted, not characters',
      written('{"é":"😀","b":"x"}'),
      [chose(6, 12, 0.5), chose(17, 20, 0.25)],
      [
        ['/é', 0.5],
        ['/b', 0.25],
      ],
    ],
    [
      'what was cut or not reached is absent',
      written('{"a":"x","b":"y', '{"a":"x","b":"y","c":null}'),
      [chose(5, 8, 0.5), chose(13, 15, 0.5)],
      [['/a', 0.5]],
    ],
    [
      'an unsettled word that was taken back is absent',
      written('{"a":1,"b":tr', '{"a":1,"b":null}'),
      [chose(5, 6, 0.5), chose(11, 13, 0.5)],
      [['/a', 0.5]],
    ],
  ])('%s', (_, constraint, choices, expected) => {
    const found = fieldProbabilities(constraint, choices);
    expect(found.map(({ path }) => path)).toEqual(expected.map(([path]) => path));
    for (const [i, { probability }] of found.entries()) expect(probability).toBeCloseTo(expected[i]![1], 12);
  });
});
