import { describe, expect, test } from 'vitest';
import { answersOf } from './answer.ts';
import { LANGUAGES, requestCode } from './request-code.ts';
import { moved, newTask, tasksBody } from './task.ts';

const decide = newTask({ type: 'decide', name: '10', text: 'Late?', list: ' yes \n\nno' });
const free = newTask({ type: 'decide', name: '2', text: 'Why?', list: '' });
const extract = newTask({ type: 'extract', name: 'facts', text: 'What?', list: 'item' });
const draft = { context: "It's late.", tasks: [decide, free, extract], maxOutputTokens: 64 };

test('a draft becomes the body of POST /v1/tasks', () => {
  expect(tasksBody(draft, 'a/b')).toEqual({
    model: 'a/b',
    context: "It's late.",
    tasks: [
      { type: 'decide', name: '10', question: 'Late?', options: ['yes', 'no'] },
      { type: 'decide', name: '2', question: 'Why?' },
      { type: 'extract', name: 'facts', instruction: 'What?', keys: ['item'] },
    ],
    max_output_tokens: 64,
  });
});

test('answers keep the order of the tasks, also for names that are numbers', () => {
  const results = { '2': { value: 'x', reason: 'r' }, '10': { value: 'yes' }, facts: { item: null, tags: ['a'] } };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  expect(answersOf(draft.tasks, { results, choices: [{ finish_reason: 'stop' }], usage })).toEqual([
    { name: '10', rows: [{ label: 'answer', value: 'yes' }] },
    {
      name: '2',
      rows: [
        { label: 'answer', value: 'x' },
        { label: 'reason', value: 'r' },
      ],
    },
    {
      name: 'facts',
      rows: [
        { label: 'item', value: null },
        { label: 'tags', value: '["a"]' },
      ],
    },
  ]);
});

describe('moved', () => {
  test.each([
    [0, 1, 'bac'],
    [2, -1, 'acb'],
    [0, -1, 'abc'],
    [2, 1, 'abc'],
  ])('item %i by %i', (from, step, expected) => {
    expect(moved([...'abc'], from, step).join('')).toBe(expected);
  });
});

test.each(LANGUAGES)('%s takes the key from the environment', (language) => {
  const code = requestCode(language, 'http://127.0.0.1:8080', '/v1/tasks', tasksBody(draft, 'a/b'));
  expect(code).toContain('ASSAY_API_KEY');
  expect(code).toContain('http://127.0.0.1:8080/v1/tasks');
});

test('a quote in the context does not end the argument of curl', () => {
  expect(requestCode('curl', '', '/v1/tasks', tasksBody(draft, 'a/b'))).toContain("It'\\''s late.");
});
