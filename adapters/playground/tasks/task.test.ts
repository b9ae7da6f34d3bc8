import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { DecisionsRequest } from '../../../lib/schema/decisions-request.ts';
import type { DecisionsResponse } from '../../../lib/schema/decisions-response.ts';
import { ExtractionsRequest } from '../../../lib/schema/extractions-request.ts';
import { RunTasksRequest } from '../../../lib/schema/task-request.ts';
import type { RunTasksResponse } from '../../../lib/schema/task-response.ts';
import { validate } from '../../../lib/validation/validate.ts';
import { readDecisions, readExtractions, readTasks } from './answer.ts';
import { INPUT_EXAMPLES } from './examples.ts';
import { CODE_LANGUAGES, requestCode } from './request-code.ts';
import {
  anotherTask,
  decisionsRequest,
  extractionsRequest,
  hasFields,
  hasProbabilities,
  moved,
  newTask,
  obstacle,
  tasksRequest,
} from './task.ts';

const decide = newTask({ type: 'decide', name: '10', text: 'Late?', list: ' yes \n\nno' });
const free = newTask({ type: 'decide', name: '2', text: 'Why?', list: '' });
const extract = newTask({ type: 'extract', name: 'facts', text: 'What?', list: 'item' });
const draft = { context: "It's late.", tasks: [decide, free, extract], maxOutputTokens: 64 };

test('a draft becomes the body of POST /v1/tasks', () => {
  expect(tasksRequest(draft, 'a/b')).toEqual({
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

test('a draft becomes the body of POST /v1/decisions, unless an answer is free', () => {
  expect([draft, { ...draft, tasks: [decide, extract] }].map(hasProbabilities)).toEqual([false, true]);
  expect(decisionsRequest({ ...draft, tasks: [decide, extract] }, 'a/b')).toEqual({
    model: 'a/b',
    input: "It's late.",
    questions: [
      { type: 'choice', name: '10', instructions: 'Late?', choices: [{ value: 'yes' }, { value: 'no' }] },
      { type: 'extract', name: 'facts', instructions: 'What?', keys: ['item'] },
    ],
    max_output_tokens: 64,
  });
});

test('unsure and many labels are asked and shown in every format', () => {
  const multi = newTask({ type: 'multi', name: 'm', text: 'About?', list: 'a\nb' });
  const unsure = newTask({ type: 'decide', name: 'u', text: 'Which?', list: 'x\ny', unsure: true });
  const tasks = [multi, unsure];
  const asked = { ...draft, tasks };
  expect(hasProbabilities(asked)).toBe(true);
  expect(tasksRequest(asked, 'a/b').tasks).toEqual([
    { type: 'multi', name: 'm', question: 'About?', options: ['a', 'b'] },
    { type: 'decide', name: 'u', question: 'Which?', options: ['x', 'y'], unsure: true },
  ]);
  expect(decisionsRequest(asked, 'a/b').questions).toEqual([
    { type: 'multi', name: 'm', instructions: 'About?', choices: [{ value: 'a' }, { value: 'b' }] },
    { type: 'choice', name: 'u', instructions: 'Which?', choices: [{ value: 'x' }, { value: 'y' }], unsure: true },
  ]);
  expect(extractionsRequest(asked, 'a/b').questions).toEqual({
    m: { type: 'multi', instructions: 'About?', criteria: ['a', 'b'] },
    u: { type: 'choice', instructions: 'Which?', criteria: ['x', 'y'], unsure: true },
  });
  const options = (labels: string, p: number) => [...labels].map((label, i) => ({ label, probability: i ? 1 - p : p }));
  const usage = { input_tokens: 1, output_tokens: 1 } as const;
  // Casts: only the members that the page reads.
  const decisions = readDecisions(tasks, {
    answers: [
      {
        type: 'multi',
        selected: ['a', 'b'],
        probabilities: [
          { value: 'a', probability: 0.75 },
          { value: 'b', probability: 0.25 },
        ],
      },
      { type: 'refusal', name: 'u', x_probabilities: [0.75, 0.25], x_p_unsure: 0.5 },
    ],
    usage,
  } as unknown as DecisionsResponse).answers;
  expect(decisions).toEqual([
    {
      name: 'm',
      rows: [
        { label: 'answer', value: 'a' },
        { label: 'answer', value: 'b' },
      ],
      options: options('ab', 0.75),
    },
    { name: 'u', rows: [], options: options('xy', 0.75), unsure: 0.5, abstained: 'unsure' },
  ]);
  const extractions = readExtractions(tasks, {
    answers: {
      m: { type: 'multi', selected: ['a', 'b'], probabilities: { a: 0.75, b: 0.25 } },
      u: { type: 'choice', choice: 'x', probabilities: { x: 0.75, y: 0.25 }, x_p_unsure: 0.5, x_abstained: true },
    },
    usage,
  } as unknown as Parameters<typeof readExtractions>[1]).answers;
  expect(extractions).toEqual([decisions[0], { ...decisions[1], rows: [{ label: 'answer', value: 'x' }] }]);
});

const fields = newTask({ type: 'fields', name: 'order', text: 'Of the order', list: 'id\ntotal: number\nnames: list' });
const empty = newTask({ type: 'fields', name: 'empty', text: '', list: 'none: list' });

test('a draft with typed fields becomes the body of POST /v1/extractions', () => {
  const mixed = { ...draft, tasks: [decide, free, extract, fields] };
  expect([draft, mixed].map(hasFields)).toEqual([false, true]);
  const body = extractionsRequest(mixed, 'a/b');
  expect(body).toEqual({
    model: 'a/b',
    state: "It's late.",
    fields: {
      2: { type: 'text', free: true, instructions: 'Why?' },
      id: { type: 'text', instructions: 'id: Of the order' },
      total: { type: 'number', instructions: 'total: Of the order' },
      names: { type: 'list', items: 'text', instructions: 'names: Of the order' },
    },
    questions: {
      10: { type: 'choice', instructions: 'Late?', criteria: ['yes', 'no'] },
      facts: { type: 'extract', instructions: 'What?', keys: ['item'] },
    },
    options: { span_unit: 'utf16' },
    max_output_tokens: 64,
  });
  validate(ExtractionsRequest, body);
});

test('an example has typed fields that the server accepts', () => {
  const drafts = INPUT_EXAMPLES.map(({ make }) => make()).filter(hasFields);
  expect(drafts).toHaveLength(1);
  for (const one of drafts) validate(ExtractionsRequest, extractionsRequest(one, 'a/b'));
});

test('typed fields carry probabilities and spans', () => {
  const response = {
    answers: {
      id: { type: 'text', value: "It's", guess: "It's", p_null: 0.5, confidence: 0.5, span: [0, 4] },
      total: { type: 'number', value: null, guess: 3, p_null: 0.75, confidence: 0.5 },
      names: {
        type: 'list',
        value: ['a', 'b'],
        spans: [
          [1, 2],
          [3, 4],
        ],
        confidences: [0.5, 0.25],
        confidence: 0.1,
      },
      none: { type: 'list', value: [], spans: [], confidences: [], confidence: 0.5 },
      2: { type: 'text', value: 'x', p_null: 0, confidence: 1, x_cut: true },
      10: { type: 'choice', choice: 'no', probabilities: { yes: 0.25, no: 0.75 }, confidence: 0.5 },
      facts: { type: 'extract', data: {}, fields: [{ path: '/item', value: 'mug', probability: 0.5 }], complete: true },
    },
    usage: { input_tokens: 7, output_tokens: 3 },
  };
  const read = readExtractions(
    [fields, empty, free, decide, extract],
    response as unknown as Parameters<typeof readExtractions>[1],
  );
  expect(read).toEqual({
    answers: [
      {
        name: 'order',
        rows: [
          { label: 'id', value: "It's", probability: 0.25, evidence: { start: 0, end: 4 } },
          { label: 'total', value: null, probability: 0.75 },
          { label: 'names', value: 'a', probability: 0.5, evidence: { start: 1, end: 2 } },
          { label: 'names', value: 'b', probability: 0.25, evidence: { start: 3, end: 4 } },
        ],
        options: [],
      },
      { name: 'empty', rows: [{ label: 'none', value: null, probability: 0.5 }], options: [] },
      { name: '2', rows: [{ label: '2', value: 'x', probability: 1 }], options: [] },
      {
        name: '10',
        rows: [{ label: 'answer', value: 'no' }],
        options: [
          { label: 'yes', probability: 0.25 },
          { label: 'no', probability: 0.75 },
        ],
      },
      { name: 'facts', rows: [{ label: 'item', value: 'mug', probability: 0.5 }], options: [] },
    ],
    cut: true,
    promptTokens: 7,
    chosenTokens: 3,
  });
});

describe('an image and a recording', () => {
  const image = { name: 'a.png', kind: 'image', url: 'data:image/png;base64,AAAA' } as const;
  const audio = { name: 'a.wav', kind: 'audio', url: 'data:audio/wav;base64,BBBB' } as const;
  const tasks = [decide, extract];

  test.each([
    [image, { images: [{ type: 'base64', mime_type: 'image/png', data: 'AAAA' }] }],
    [audio, { audio: [{ type: 'base64', mime_type: 'audio/wav', data: 'BBBB' }] }],
  ])('%j is part of both bodies, which the server accepts', (media, members) => {
    for (const context of ['Sent today.', '']) {
      const body = tasksRequest({ ...draft, tasks, context, media }, 'a/b');
      expect(body).toMatchObject(members);
      validate(RunTasksRequest, body);
      validate(DecisionsRequest, decisionsRequest({ ...draft, tasks, context, media }, 'a/b'));
    }
  });
});

test('answers keep the order of the tasks, also for names that are numbers', () => {
  const results = { '2': { value: 'x', reason: 'r' }, '10': { value: 'yes' }, facts: { item: null, tags: ['a'] } };
  const response = {
    results,
    choices: [{ finish_reason: 'length' }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  };
  expect(readTasks(draft.tasks, response as unknown as RunTasksResponse)).toEqual({
    answers: [
      { name: '10', rows: [{ label: 'answer', value: 'yes' }], options: [] },
      {
        name: '2',
        rows: [
          { label: 'answer', value: 'x' },
          { label: 'reason', value: 'r' },
        ],
        options: [],
      },
      {
        name: 'facts',
        rows: [
          { label: 'item', value: null },
          { label: 'tags', value: '["a"]' },
        ],
        options: [],
      },
    ],
    cut: true,
    promptTokens: 7,
    chosenTokens: 3,
  });
});

test('decisions carry probabilities and evidence', () => {
  const evidence = { source: '/input', start: 0, end: 4 };
  const response = {
    answers: [
      { type: 'choice', name: '10', choice: 'no', probabilities: [{ value: 'no', probability: 1 }] },
      {
        type: 'extract',
        name: 'facts',
        complete: false,
        fields: [{ path: '/item', value: "It's", probability: 0.5, evidence }],
      },
    ],
    usage: { input_tokens: 7, output_tokens: 3 },
  };
  expect(readDecisions([decide, extract], response as unknown as DecisionsResponse)).toEqual({
    answers: [
      { name: '10', rows: [{ label: 'answer', value: 'no' }], options: [{ label: 'no', probability: 1 }] },
      { name: 'facts', rows: [{ label: 'item', value: "It's", probability: 0.5, evidence }], options: [] },
    ],
    cut: true,
    promptTokens: 7,
    chosenTokens: 3,
  });
});

test('a choice that is not made and a key with a slash', () => {
  const response = {
    answers: [
      { type: 'refusal', name: '10' },
      { type: 'extract', name: 'facts', complete: true, fields: [{ path: '/a~1b~01', value: 'x', probability: 1 }] },
    ],
    usage: { input_tokens: 7, output_tokens: 3 },
  };
  expect(readDecisions([decide, extract], response as unknown as DecisionsResponse).answers).toEqual([
    { name: '10', rows: [], options: [], abstained: 'improbable' },
    { name: 'facts', rows: [{ label: 'a/b~1', value: 'x', probability: 1 }], options: [] },
  ]);
});

test.each([
  [[], 'task_1'],
  [['a', 'task_2'], 'task_3'],
  [['a', 'task_3', 'task_4'], 'task_5'],
  [['task_2', 'task_4', 'task_5'], 'task_6'],
])('a task added to %j is %s', (names, expected) => {
  expect(anotherTask(names.map((name) => newTask({ ...free, name }))).name).toBe(expected);
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

test.each(CODE_LANGUAGES)('%s takes the key from the environment', (language) => {
  const code = requestCode(language, 'http://127.0.0.1:8080', '/v1/tasks', tasksRequest(draft, 'a/b'));
  expect(code).toContain('ASSAY_API_KEY');
  expect(code).toContain('http://127.0.0.1:8080/v1/tasks');
});

test('curl reads a body with quotes, variables and more bytes than an argument may have', () => {
  const context = `It's "late": $HOME \`x\` ${'\u0436'.repeat(100_000)}\nJSON\n`;
  const body = tasksRequest({ ...draft, context }, 'a/b');
  const printStdin = 'curl() { cat; }\n';
  const stdout = execFileSync('sh', {
    input: printStdin + requestCode('curl', '', '/v1/tasks', body),
    encoding: 'utf8',
  });
  expect(JSON.parse(stdout)).toEqual(body);
});

const ENCODER = {
  decide: 'options',
  extract: false,
  chat: false,
  abstains: false,
  max_tokens: 9,
  max_options: 9,
} as const;
test.each([
  ['a question with options', decide, ENCODER, ''],
  ['a free question', free, ENCODER, 'Give options'],
  ['a free question of a chat model', free, { ...ENCODER, decide: 'any' } as const, ''],
  ['an extraction', extract, ENCODER, 'extracts nothing'],
  ['typed fields', newTask({ type: 'fields', name: 'f', text: '', list: 'a' }), ENCODER, 'extracts nothing'],
  ['an extraction of spans', extract, { ...ENCODER, extract: 'spans' } as const, ''],
  ['a task for a model that is not known', extract, null, ''],
])('%s: the loaded model can answer it, or the task says why not', (_, task, abilities, words) => {
  expect(obstacle(task, abilities)).toMatch(words === '' ? /^$/ : words);
});
