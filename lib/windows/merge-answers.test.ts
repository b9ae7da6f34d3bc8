import { expect, test } from 'vitest';
import { at } from '../at.ts';
import type { BatchAnswer, Task, TaskAnswer, TaskBatch } from '../backend.ts';
import { leavesOf } from '../json/leaves.ts';
import { parseModelId } from '../model-id.ts';
import type { Combine } from '../schema/windows.ts';
import { type MergeRules, mergeAnswers } from './merge-answers.ts';

const usage = { promptTokens: 10, stateTokens: 6, completionTokens: 2 };

/** Merges the answers to one task, of which the windows of the text have one each. */
function merged(
  task: Task,
  windows: readonly (readonly [text: string, answer: Omit<TaskAnswer, 'name'>])[],
  rules: Partial<MergeRules> = {},
): BatchAnswer {
  let text = '';
  const answered = windows.map(([part, answer]) => {
    const start = text.length;
    text += part;
    const answers = [{ name: 'q0', ...answer }];
    const whole: BatchAnswer = {
      model: parseModelId('acme/one'),
      answers,
      finishReason: 'stop',
      usage,
      cachedTokens: 1,
    };
    return { start, end: text.length, answer: whole };
  });
  const batch: TaskBatch = {
    input: { context: text },
    media: [],
    tasks: [task],
    temperature: 0,
    maxOutputTokens: 16,
    probabilities: { calibrated: true },
  };
  return mergeAnswers(batch, text, answered, { unit: 'utf16', absentIsLast: () => false, ...rules });
}
const only = (answer: BatchAnswer) => at(answer.answers, 0);

const options = (kind: 'predicate' | 'choice' | 'score', count = 2): Task => ({
  type: 'decide',
  name: 'q0',
  question: '?',
  kind,
  options: ['a', 'b', 'c'].slice(0, count),
});
const p = (...probabilities: number[]) => ({ json: '{"value":"a"}', optionLogprobs: probabilities.map(Math.log) });
const shares = ({ optionLogprobs = [] }: TaskAnswer) => optionLogprobs.map((one) => Number(Math.exp(one).toFixed(6)));

test.each([
  [
    'predicate',
    undefined,
    [
      [0.2, 0.8],
      [0.7, 0.3],
      [0.1, 0.9],
    ],
    [0.7, 0.3],
    1,
  ],
  [
    'predicate',
    'any',
    [
      [0.2, 0.8],
      [0.7, 0.3],
    ],
    [0.7, 0.3],
    1,
  ],
  [
    'predicate',
    'all',
    [
      [0.2, 0.8],
      [0.7, 0.3],
    ],
    [0.2, 0.8],
    0,
  ],
  [
    'predicate',
    'noisy_or',
    [
      [0.2, 0.8],
      [0.5, 0.5],
    ],
    [0.6, 0.4],
    1,
  ],
  [
    'choice',
    undefined,
    [
      [0.4, 0.6],
      [0.1, 0.9],
      [0.8, 0.2],
    ],
    [0.1, 0.9],
    1,
  ],
  [
    'choice',
    'mean',
    [
      [0.5, 0.5],
      [0.1, 0.9],
    ],
    [0.25, 0.75],
    1,
  ],
  [
    'score',
    undefined,
    [
      [0.9, 0.05, 0.05],
      [0.2, 0.2, 0.6],
    ],
    [0.9, 0.05, 0.05],
    0,
  ],
  [
    'score',
    'max',
    [
      [0.9, 0.05, 0.05],
      [0.2, 0.2, 0.6],
    ],
    [0.2, 0.2, 0.6],
    1,
  ],
] as const)('combines a %s by %s', (kind, combine, windows, expected, index) => {
  const answers = windows.map((one) => ['text ', p(...one)] as const);
  const answer = only(
    merged(options(kind, windows[0].length), answers, combine ? { combine: combine as Combine } : {}),
  );
  expect(shares(answer)).toEqual(expected);
  expect(answer.window).toEqual({ index, count: windows.length, start: 5 * index, end: 5 * index + 5 });
});

test('believes the window that has the value, if the last option is that there is none', () => {
  const answers = [p(0.01, 0.01, 0.98), p(0.7, 0.1, 0.2), p(0, 0.001, 0.999)].map((one) => ['x', one] as const);
  expect(shares(only(merged(options('choice', 3), answers, { absentIsLast: () => true })))).toEqual([0.7, 0.1, 0.2]);
});

const extract: Task = { type: 'extract', name: 'q0', instruction: 'x', shape: { kind: 'open' } };
/** An answer whose values all have this probability. */
const found = (value: unknown, probability = 0.9, absent?: number): Omit<TaskAnswer, 'name'> => {
  const json = JSON.stringify(value);
  const fields = leavesOf(json).map(({ path }) => ({ path, probability }));
  return { json, fields, certainty: probability, ...(absent === undefined ? {} : { absent }) };
};

test('takes the value of the window that states it, with its place in the whole text', () => {
  const answer = only(
    merged(extract, [
      ['INV-1 is void. ', found({ n: 'void' }, 0.3, 0.95)],
      ['😀 The invoice is INV-7. ', found({ n: 'INV-7' }, 0.8, 0.02)],
    ]),
  );
  expect(answer).toMatchObject({ json: '{"n":"INV-7"}', absent: 0.02, window: { index: 1 } });
  expect(answer.fields).toEqual([{ path: '/n', probability: 0.8, evidence: { start: 33, end: 38 } }]);
  expect(answer.candidates).toBeUndefined();
});

test('adds up equal values, counts a place once, and shows conflicting ones', () => {
  const answer = only(
    merged(extract, [
      ['Bo is here. ', found({ n: 'Bo' }, 0.5, 0.1)],
      ['Cy is here. ', found({ n: 'Cy' }, 0.7, 0.1)],
      ['  bo  again', found({ n: 'bo' }, 0.4, 0.2)],
    ]),
  );
  expect(answer).toMatchObject({ json: '{"n":"Bo"}', absent: 0.1 });
  expect(answer.candidates).toEqual([
    { path: '/n', json: '"Cy"', probability: 0.7, absent: 0.1, window: 1, evidence: { start: 12, end: 14 } },
  ]);
});

test('joins lists in the order of the text, and the same place once', () => {
  const both = ['Ann met Bob. ', 'Bob left. '] as const;
  const answer = only(
    merged(extract, [
      [both[0], found({ l: ['Bob', 'Ann'] }, 0.6)],
      [both[1], found({ l: ['Bob left', 'Bob'] }, 0.7)],
      ['Nothing.', found({ l: [] })],
    ]),
  );
  expect(answer.json).toBe('{"l":["Ann","Bob","Bob left"]}');
  expect(answer.fields).toEqual([
    { path: '/l/0', probability: 0.6, evidence: { start: 0, end: 3 } },
    { path: '/l/1', probability: 0.6, evidence: { start: 8, end: 11 } },
    { path: '/l/2', probability: 0.7, evidence: { start: 13, end: 21 } },
  ]);
  expect(answer.certainty).toBe(0.6);
});

test('merges the members of an object each on its own, and keeps the digits of numbers', () => {
  const answer = only(
    merged(extract, [
      ['Total 1,080.00. ', { ...found({ total: 1080, who: null }), json: '{"total":1080.00,"who":null}' }],
      ['By Dana. ', found({ total: null, who: 'Dana', lines: [{ a: 1 }] })],
      ['', found({ total: null, who: null, lines: [{ a: 1 }, { a: 2 }] })],
    ]),
  );
  expect(answer.json).toBe('{"total":1080.00,"who":"Dana","lines":[{"a":1},{"a":2}]}');
  expect(answer.fields?.map(({ path }) => path)).toEqual(['/total', '/who', '/lines/0/a', '/lines/1/a']);
  expect(answer.fields?.[0]?.evidence).toEqual({ start: 6, end: 14 });
});

test('sums the usage, and names every task that was cut', () => {
  const answer = merged(extract, [
    ['a', found({})],
    ['b', found({})],
  ]);
  expect(answer.usage).toEqual({ promptTokens: 20, stateTokens: 12, mediaTokens: 0, completionTokens: 4 });
  expect(answer.cachedTokens).toBe(2);
  expect(only(merged(extract, [['😀a', found({ n: 'a' })]], { unit: 'code_point' })).window).toEqual({
    index: 0,
    count: 1,
    start: 0,
    end: 2,
  });
});
