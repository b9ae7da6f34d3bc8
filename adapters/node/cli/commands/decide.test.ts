import { expect, test } from 'vitest';
import { bars } from './decide.ts';

test.each<[string, [string, number][], string[]]>([
  ['one certain', [['yes', 1]], [`yes  ${'█'.repeat(24)}  100.0%`]],
  [
    'labels and figures aligned, a rest in eighths',
    [
      ['yes', 0.75],
      ['no way', 0.25],
    ],
    [`yes     ${'█'.repeat(18)}${' '.repeat(6)}   75.0%`, `no way  ${'█'.repeat(6)}${' '.repeat(18)}   25.0%`],
  ],
  ['next to nothing', [['a', 0.003]], [`a  ▏${' '.repeat(23)}    0.3%`]],
  ['nothing', [['a', 0]], [`a  ${' '.repeat(24)}    0.0%`]],
])('%s', (_, probabilities, lines) => {
  expect(bars(probabilities)).toEqual(lines);
});
