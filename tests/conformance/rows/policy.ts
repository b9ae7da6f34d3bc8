import { expect } from 'vitest';
import type { Row, RowRequest } from '../row.ts';

/*
 * Answers beyond probabilities: that the input does not tell, and which of many labels apply.
 */

const model = 'assay/starter';
const near = (value: number): unknown => expect.closeTo(value, 9);
const state = 'The lamp is red. It hums.';
const choices = [{ value: 'a', description: 'A' }, { value: 'b' }];
const ask = {
  decisions: (question: object): RowRequest => ({
    path: '/v1/decisions',
    json: { model, input: state, questions: [{ name: 'n', instructions: 'Q?', ...question }] },
  }),
  systemOne: (question: object): RowRequest => ({
    path: '/v1/systemone',
    json: { model, state, questions: { n: { instructions: 'Q?', ...question } } },
  }),
  google: (question: object): RowRequest => ({
    path: '/v1beta/decisions',
    json: { model, input: state, questions: { n: { instructions: 'Q?', ...question } } },
  }),
  tasks: (task: object): RowRequest => ({
    path: '/v1/tasks',
    json: { model, context: state, tasks: [{ name: 'n', question: 'Q?', ...task }] },
  }),
};
const row = (
  name: string,
  request: RowRequest,
  probabilities: readonly (readonly number[])[],
  like: object,
  tasks?: readonly object[],
): Row => ({
  name: `policy: ${name}`,
  script: { tasks: { probabilities } },
  request,
  expect: {
    like,
    ...(tasks ? { calls: [{ call: 'runTasks', batch: { probabilities: { calibrated: true }, tasks } }, 'admit'] } : {}),
  },
});
const sure = [0.375, 0.375, 0.25];
const unsure = [0.3, 0.2, 0.5];
const labels = [
  [0.75, 0.25],
  [0.25, 0.75],
];
const refused = (name: string, request: RowRequest, status: number, param: string): Row => ({
  name: `policy: ${name}`,
  request,
  expect: { status, like: { error: { param } }, calls: [] },
});

export const policyRows: readonly Row[] = [
  row(
    'decisions: unsure is an option beside the probabilities',
    ask.decisions({ type: 'predicate', unsure: 'The text does not say' }),
    [sure],
    { answers: [{ type: 'predicate', name: 'n', probability: near(0.5), x_p_unsure: near(0.25) }] },
    [
      {
        type: 'decide',
        kind: 'choice',
        id: 'n',
        name: 'q0',
        question: 'Q?',
        options: ['yes', 'no', 'not stated'],
        descriptions: [null, null, 'The text does not say'],
        unsure: true,
      },
    ],
  ),
  row(
    'decisions: the likeliest unsure is a refusal',
    ask.decisions({ type: 'choice', choices, unsure: true }),
    [unsure],
    {
      answers: [{ type: 'refusal', name: 'n', x_probabilities: [near(0.6), near(0.4)], x_p_unsure: near(0.5) }],
    },
  ),
  row(
    'decisions: score',
    ask.decisions({ type: 'score', levels: [{ label: 'low' }, { label: 'high' }], unsure: true }),
    [[0.2, 0.6, 0.2]],
    { answers: [{ type: 'score', score: near(0.75), x_p_unsure: near(0.2) }] },
  ),
  row(
    'system one: unsure',
    ask.systemOne({ type: 'choice', criteria: { a: 'A', b: null }, unsure: true }),
    [unsure],
    {
      answers: {
        n: { choice: 'a', probabilities: { a: near(0.6), b: near(0.4) }, x_abstained: true, x_p_unsure: near(0.5) },
      },
    },
    [{ id: 'n', options: ['a', 'b', 'not stated'], descriptions: ['A', null, null], sent: { id: 'n' }, unsure: true }],
  ),
  row('system one: noul with unsure', ask.systemOne({ type: 'noul', unsure: true }), [sure], {
    answers: { n: { type: 'noul', noul: near(0.5), x_p_unsure: near(0.25) } },
  }),
  row('google: unsure', ask.google({ type: 'noul', unsure: true }), [unsure], {
    answers: { n: { type: 'noul', noul: near(0.6), x_abstained: true, x_p_unsure: near(0.5) } },
  }),
  row(
    'tasks: unsure',
    ask.tasks({ type: 'decide', options: ['a', 'b'], unsure: true }),
    [unsure],
    { results: { n: { value: 'a', abstained: true, x_p_unsure: near(0.5) } } },
    [{ name: 'n', options: ['a', 'b', 'not stated'], unsure: true }],
  ),
  row(
    '/decide: unsure',
    { path: '/decide', json: { model, context: state, question: 'Q?', options: ['a', 'b'], unsure: true } },
    [sure],
    { value: 'a', result: { value: 'a', x_p_unsure: near(0.25) } },
  ),
  refused('tasks: unsure needs options', ask.tasks({ type: 'decide', unsure: true }), 422, 'tasks[0].options'),

  row(
    'decisions: many labels',
    ask.decisions({ type: 'multi', choices }),
    labels,
    {
      answers: [
        {
          type: 'multi',
          name: 'n',
          selected: ['a'],
          probabilities: [
            { value: 'a', probability: near(0.75) },
            { value: 'b', probability: near(0.25) },
          ],
          threshold: 0.5,
          set_confidence: near(0.5625),
        },
      ],
    },
    [
      {
        kind: 'predicate',
        id: 'n',
        name: 'q0',
        question: 'Q?\nDoes this apply: a (A)?',
        options: ['yes', 'no'],
        first: true,
      },
      {
        kind: 'predicate',
        id: 'n',
        name: 'q1',
        question: 'Q?\nDoes this apply: b?',
        options: ['yes', 'no'],
        first: false,
      },
    ],
  ),
  row('system one: many labels, at least two', ask.systemOne({ type: 'multi', criteria: ['a', 'b'], min: 2 }), labels, {
    answers: {
      n: { selected: ['a', 'b'], probabilities: { a: near(0.75), b: near(0.25) }, set_confidence: near(0.1875) },
    },
  }),
  row(
    'google: many labels, another threshold',
    ask.google({ type: 'multi', criteria: { a: null, b: null }, threshold: 0.2 }),
    labels,
    {
      answers: { n: { type: 'multi', selected: ['a', 'b'], threshold: 0.2 } },
    },
  ),
  row('tasks: many labels', ask.tasks({ type: 'multi', options: ['a', 'b'], max: 1 }), labels, {
    results: { n: { values: ['a'], probabilities: { a: near(0.75), b: near(0.25) }, set_confidence: near(0.5625) } },
  }),
  // The scripted backend certifies nothing; what the engine's says is tested beside `automated`.
  ...(
    [
      ['decisions', ask.decisions({ type: 'predicate' })],
      ['systemOne', ask.systemOne({ type: 'noul' })],
      ['google', ask.google({ type: 'noul' })],
      ['tasks', ask.tasks({ type: 'decide', options: ['a', 'b'] })],
    ] as const
  ).map(
    ([name, { path, json }]): Row => ({
      name: `policy: ${name}: max_error reaches the backend`,
      request: { path, json: { ...Object(json), max_error: 0.05 } },
      expect: {
        calls: [{ call: 'runTasks', batch: { probabilities: { calibrated: true, maxError: 0.05 } } }, 'admit'],
      },
    }),
  ),
  ...(
    [
      ['decisions', ask.decisions({ type: 'predicate', evidence: true }), (a: object) => ({ answers: [a] }), '/input'],
      ['system one', ask.systemOne({ type: 'noul', evidence: {} }), (n: object) => ({ answers: { n } }), '/state'],
      ['google', ask.google({ type: 'noul', evidence: true }), (n: object) => ({ answers: { n } }), '/input'],
      [
        'tasks',
        ask.tasks({ type: 'decide', options: ['a', 'b'], evidence: true }),
        (n: object) => ({ results: { n } }),
        '/context',
      ],
    ] as const
  ).map(
    ([name, request, like, source]): Row => ({
      name: `policy: ${name}: the words that decide are quoted, in a second batch about the same text`,
      script: { tasks: { probabilities: [[0.75, 0.25]], answers: ['{"words":"red"}'] } },
      request,
      expect: {
        like: like({ x_evidence: [{ source, start: 12, end: 15, text: 'red', probability: 0.9 }] }),
        calls: [
          { call: 'runTasks', batch: { tasks: [{ type: 'decide' }] } },
          'admit',
          {
            call: 'runTasks',
            batch: { tasks: [{ type: 'extract', name: 'e0', verbatim: true }], maxOutputTokens: 96 },
          },
          'admit',
        ],
      },
    }),
  ),
  {
    name: 'policy: ablation leaves out one sentence at a time',
    script: { tasks: { probabilities: [[0.75, 0.25]] } },
    request: ask.systemOne({ type: 'noul', evidence: { method: 'ablation', top: 1 } }),
    expect: {
      // The scripted backend answers the same without any sentence, so none decides.
      like: { answers: { n: { noul: near(0.75), x_evidence: [] } } },
      calls: [
        { call: 'runTasks', batch: { input: { context: state } } },
        'admit',
        { call: 'runTasks', batch: { input: { context: 'It hums.' }, tasks: [{ name: 'q0' }] } },
        'admit',
        { call: 'runTasks', batch: { input: { context: 'The lamp is red. ' }, tasks: [{ name: 'q0' }] } },
        'admit',
      ],
    },
  },
  ...(
    [
      ['an extraction', ask.decisions({ type: 'extract', keys: ['a'] }), 400],
      ['many labels', ask.systemOne({ type: 'multi', criteria: ['a'] }), 422],
      ['an answer in words', ask.tasks({ type: 'decide' }), 422],
    ] as const
  ).map(([name, { path, json }, status]) =>
    refused(`max_error of ${name}`, { path, json: { ...Object(json), max_error: 0.05 } }, status, 'max_error'),
  ),
  refused(
    'max_error of uncalibrated probabilities',
    {
      path: '/v1/systemone/batch',
      json: {
        model,
        states: [state],
        questions: { n: { type: 'noul', instructions: 'Q?' } },
        calibrated: false,
        max_error: 0.1,
      },
    },
    422,
    'max_error',
  ),
  refused(
    'max_error of an extraction alone',
    { path: '/extract', json: { model, context: state, instruction: 'I', keys: ['a'], max_error: 0.1 } },
    400,
    'max_error',
  ),
  {
    name: 'policy: system one, many states: unsure, many labels and evidence are as in a request of their own',
    script: { tasks: { probabilities: [unsure, ...labels], answers: ['{"words":"red"}'] } },
    request: {
      path: '/v1/systemone/batch',
      json: {
        model,
        states: [state],
        questions: {
          u: { type: 'noul', instructions: 'Q?', unsure: true, evidence: true },
          m: { type: 'multi', criteria: ['a', 'b'] },
        },
      },
    },
    expect: {
      like: {
        results: [
          {
            answers: {
              u: {
                noul: near(0.6),
                x_abstained: true,
                x_p_unsure: near(0.5),
                x_evidence: [{ source: '/state', text: 'red' }],
              },
              m: { selected: ['a'], set_confidence: near(0.5625) },
            },
          },
        ],
      },
    },
  },
  {
    name: 'policy: extractions: evidence of a question has the unit of the spans that the request asks for',
    script: { tasks: { probabilities: [[0.75, 0.25]], answers: ['{"words":"red"}'] } },
    request: {
      path: '/v1/extractions',
      json: {
        model,
        state: '\u{1F4A1} is red.',
        questions: { n: { type: 'noul', instructions: 'Q?', evidence: true } },
        options: { span_unit: 'code_point' },
      },
    },
    expect: { like: { answers: { n: { x_evidence: [{ source: '/state', start: 5, end: 8, text: 'red' }] } } } },
  },
  refused('evidence needs options', ask.tasks({ type: 'decide', evidence: true }), 422, 'tasks[0].options'),
  {
    name: 'policy: questions after many labels keep their answers',
    script: { tasks: { probabilities: [...labels, [0.125, 0.875]] } },
    request: {
      path: '/v1/systemone',
      json: {
        model,
        state,
        questions: { m: { type: 'multi', criteria: ['a', 'b'] }, n: { type: 'noul', instructions: 'Q?' } },
      },
    },
    expect: { like: { answers: { m: { selected: ['a'] }, n: { noul: near(0.125) } } } },
  },
  refused(
    'min beyond the labels',
    ask.systemOne({ type: 'multi', criteria: ['a', 'b'], min: 3 }),
    422,
    'questions.n.min',
  ),
  refused('min beyond max', ask.decisions({ type: 'multi', choices, min: 2, max: 1 }), 400, 'questions[0].min'),
  {
    name: 'policy: more labels than questions may be',
    request: {
      path: '/v1/systemone',
      json: {
        model,
        state,
        questions: Object.fromEntries(
          ['a', 'b'].map((name) => [name, { type: 'multi', criteria: Array.from({ length: 201 }, (_, i) => `l${i}`) }]),
        ),
      },
    },
    expect: { status: 422, like: { error: { code: 'invalid_value' } }, calls: [] },
  },
];
