import { describe, expect, it } from 'vitest';
import { addAnswer, majorityBaseline, noScores, randomBaseline } from './score.ts';
import { type Case, readTestSet, TEST_SETS, type Text } from './test-set.ts';

const decide = (expected: string): Case => ({ type: 'decide', question: '?', options: ['yes', 'no'], expected });
const extract = (expected: Record<string, unknown>): Case => ({
  type: 'extract',
  instruction: 'all',
  keys: Object.keys(expected),
  expected,
});

describe('an answer', () => {
  it.each<[Case, unknown, number, number]>([
    [decide('yes'), 'yes', 1, 1],
    [decide('yes'), 'Yes', 0, 1],
    [decide('yes'), undefined, 0, 1],
    [extract({ a: 'x', b: null }), { a: 'x', b: null }, 2, 2],
    [extract({ a: 'x', b: null }), { a: 'x ' }, 0, 2],
    [extract({ a: { b: 3, c: ['y'] } }), { a: { b: 3, c: ['z'] } }, 1, 2],
    [extract({ a: { b: 3 } }), { a: 'text' }, 0, 1],
    [extract({ toString: 'x' }), {}, 0, 1],
  ])('%j answered with %j', (task, answer, right, total) => {
    const scores = noScores();
    addAnswer(scores, task, answer);
    expect(task.type === 'decide' ? scores.decide : scores.fields).toEqual({ right, total });
  });
});

it.each<[Case, unknown, unknown]>([
  [decide('yes'), 'no', 'no'],
  [extract({ a: 'x' }), { a: null }, { a: null }],
])('the other key of %j is %j', (task, key, answer) => {
  const scores = noScores();
  addAnswer(scores, task, answer);
  addAnswer(scores, task, answer, key);
  expect(task.type === 'decide' ? scores.decide : scores.fields).toEqual({ right: 1, total: 2 });
});

describe('baselines', () => {
  const texts: Text[] = [
    { context: 'one two three', tasks: [decide('no'), decide('no'), decide('no'), decide('yes')] },
    { context: 'one two three', tasks: [extract({ a: 'two', b: null })] },
  ];
  it('guess at random', () => {
    expect(randomBaseline(texts)).toEqual({ decide: { right: 2, total: 4 }, fields: { right: 0.5, total: 2 } });
  });
  it('say what is most frequent elsewhere', () => {
    const lone: Text[] = [{ context: '', tasks: [decide('yes')] }];
    expect(majorityBaseline(lone).decide).toEqual({ right: 0.5, total: 1 });
    expect(majorityBaseline(texts)).toEqual({ decide: { right: 3, total: 4 }, fields: { right: 1, total: 2 } });
  });
});

describe.each(TEST_SETS)('the set %s', (name) => {
  it('is large enough, and every decide task expects one of its options', async () => {
    const texts = await readTestSet(name);
    expect(texts.length).toBeGreaterThanOrEqual(150);
    for (const task of texts.flatMap((text) => text.tasks)) {
      if (task.type !== 'decide') continue;
      expect(task.options).toContain(task.expected);
      expect(task.options).toContain(task.corrected ?? task.expected);
      expect(new Set(task.options).size).toBe(task.options.length);
    }
  });
});
