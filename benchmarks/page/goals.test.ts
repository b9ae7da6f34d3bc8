import { expect, test } from 'vitest';
import type { Figure } from '../report.ts';
import { goalsText, isMet, worstOf } from './goals.ts';

const figures: Figure[] = [12, 80, 40].map((value, i) => ({
  bench: 'x',
  system: 'ours',
  case: `${i} clients`,
  metric: 'p99',
  value,
  unit: 'ms',
}));

test('the worst figure decides, and a miss is said with its reason', () => {
  const [missed] = worstOf('refusal', { most: 50 }, figures, 'It is slow.');
  const [met] = worstOf('refusal', { least: 10 }, figures, 'It is slow.');
  expect([isMet(missed!), isMet(met!)]).toEqual([false, true]);
  expect(goalsText([missed!, met!])).toBe(
    [
      'Goals:',
      '',
      '- **Missed**: refusal (worst: 1 clients): 80 ms; goal: at most 50. It is slow.',
      '- Reached: refusal (worst: 0 clients): 12 ms; goal: at least 10.',
    ].join('\n'),
  );
});

test('returns no sentence without figures', () => {
  expect(goalsText(worstOf('refusal', { most: 50 }, []))).toBe('');
});
