import { expect } from 'vitest';
import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const path = '/v1beta/decisions';
const noul = { type: 'noul', instructions: 'Refund?' };
const body = (changes: object = {}) => ({
  model: `models/${model}`,
  input: 'Pay me.',
  questions: { a: noul },
  ...changes,
});
const sent = (name: string, changes: object, batch: object, more: Partial<Row> = {}): Row => ({
  name: `${path}: ${name}`,
  request: { path, json: body(changes) },
  expect: { calls: [{ call: 'runTasks', batch }, 'admit'] },
  ...more,
});
const asked = (name: string, question: object, task: object): Row =>
  sent(name, { questions: { a: question } }, { tasks: [task] });
const answered = (name: string, question: object, probabilities: readonly number[], answer: object): Row => ({
  name: `${path}: ${name}`,
  script: { tasks: { probabilities: [probabilities], usage: { promptTokens: 40, completionTokens: 3 } } },
  request: { path, json: body({ questions: { a: question } }) },
  expect: {
    json: {
      answers: { a: answer },
      usage: { total_input_tokens: 40, total_output_tokens: 3, total_cached_tokens: 0, total_tokens: 43 },
    },
  },
});
const near = (value: number): unknown => expect.closeTo(value, 9);
const failure = (code: number, status: string) => ({ error: { code, message: expect.any(String), status } });
const refused = (name: string, changes: object, message: RegExp): Row => ({
  name: `${path}: 400: ${name}`,
  request: { path, json: body(changes) },
  expect: {
    status: 400,
    json: { error: { code: 400, message: expect.stringMatching(message), status: 'INVALID_ARGUMENT' } },
    calls: [],
  },
});
const failed = (code: ErrorCode) => ({ tasks: { fail: { code, message: 'Do this.', retryAfterSeconds: 2 } } });
const openRouter = { model: 'jev-latest', state: 'x', questions: { a: noul }, provider: null, session_id: 's' };

/** Google's Decisions, and the paths of OpenRouter's clients, which have the same errors. */
export const googleDecisions: readonly Row[] = [
  sent('a text', {}, { model, input: { context: 'Pay me.' }, media: [], tasks: [{ kind: 'predicate', name: 'q0' }] }),
  sent(
    'a list of parts',
    {
      input: [
        { type: 'text', text: 'Pay' },
        { type: 'image', data: 'AAAA', mime_type: 'image/png' },
        { type: 'audio', uri: 'https://a.example/b.wav' },
      ],
    },
    {
      input: {
        messages: [
          {
            role: 'user',
            parts: [
              { type: 'text', text: 'Pay' },
              { type: 'image', source: { type: 'base64', data: 'AAAA', mimeType: 'image/png' } },
              { type: 'audio', source: { type: 'url', url: 'https://a.example/b.wav' } },
            ],
          },
        ],
      },
    },
  ),
  {
    name: `${path}: questions and options named by numbers keep their places`,
    script: {
      tasks: {
        probabilities: [
          [0.75, 0.25],
          [0.25, 0.75],
        ],
        usage: { promptTokens: 40, completionTokens: 3 },
      },
    },
    request: {
      path,
      body:
        `{"model":"${model}","input":"x","questions":{"b":{"type":"noul","instructions":"?"},` +
        '"1":{"type":"choice","instructions":"?","criteria":{"z":null,"2":null}}}}',
    },
    expect: {
      text:
        '{"answers":{"b":{"type":"noul","noul":0.75,"confidence":0.75},"1":{"type":"choice","choice":"2",' +
        '"confidence":0.75,"probabilities":{"z":0.25,"2":0.75}}},"usage":{"total_input_tokens":40,' +
        '"total_output_tokens":3,"total_cached_tokens":0,"total_tokens":43}}',
    },
  },
  sent('one part', { input: { type: 'text', text: 'Pay' } }, { input: { messages: [{ parts: [{ text: 'Pay' }] }] } }),
  sent('settings', { orders: 2, calibrated: false }, { probabilities: { orders: 2, calibrated: false } }),
  asked(
    'noul: criteria',
    { ...noul, criteria: { true_description: 'asks for money', false_description: null } },
    { question: 'Refund?', options: ['yes', 'no'], descriptions: ['asks for money', null] },
  ),
  asked(
    'instructions as parts',
    {
      ...noul,
      instructions: [
        { type: 'text', text: 'One' },
        { type: 'text', text: 'two' },
      ],
    },
    { question: 'One\ntwo' },
  ),
  asked(
    'choice',
    { type: 'choice', instructions: 'Which?', criteria: { x: 'X', y: 'Y' } },
    { kind: 'choice', options: ['x', 'y'], descriptions: ['X', 'Y'] },
  ),
  asked('score', { type: 'score', instructions: 'How?', criteria: ['low', 'high'] }, { options: ['low', 'high'] }),

  answered('noul: an answer', noul, [0.75, 0.25], { type: 'noul', noul: near(0.75), confidence: near(0.75) }),
  answered('noul: never certain', noul, [0, 1], { type: 'noul', noul: 0.01, confidence: 0.99 }),
  answered('choice: an answer', { type: 'choice', instructions: '?', criteria: { '10': 'X', y: 'Y' } }, [0.25, 0.75], {
    type: 'choice',
    choice: 'y',
    confidence: near(0.75),
    probabilities: { 10: near(0.25), y: near(0.75) },
  }),
  answered('score: an answer', { type: 'score', instructions: '?', criteria: ['low', 'high'] }, [0.25, 0.75], {
    type: 'score',
    score: near(0.75),
    confidence: near(0.75),
    legend: { 0: 'low', 1: 'high' },
    probabilities: { 0: near(0.25), 1: near(0.75) },
  }),
  {
    name: '/v1/decisions: a body with an input and questions by name is of Google',
    request: { path: '/v1/decisions', json: body() },
    expect: { like: { answers: { a: { type: 'noul' } }, usage: { total_input_tokens: 10 } } },
  },
  ...[path, '/v1/decisions', '/v1/systemone'].map(
    (one): Row => ({
      name: `${one}: the key in x-goog-api-key`,
      request: { path: one, json: body(), headers: { authorization: null, 'x-goog-api-key': 'test-key' } },
      expect: { like: { answers: { a: { type: 'noul' } } } },
    }),
  ),
  {
    name: `${path}: a key in x-goog-api-key that is not known`,
    request: { path, json: body(), headers: { authorization: null, 'x-goog-api-key': 'other' } },
    expect: { status: 401, json: failure(401, 'UNAUTHENTICATED'), calls: [] },
  },
  refused('no questions', { questions: {} }, /^questions must not be empty/),
  refused('instructions missing', { questions: { a: { type: 'noul' } } }, /^questions\.a\.instructions is required/),
  refused('a part without source', { input: [{ type: 'image' }] }, /^input\[0\]\.data is required/),
  refused(
    'a video',
    { input: [{ type: 'video', uri: 'https://a.example/b.mp4' }] },
    /^input\[0\]\.type must be one of/,
  ),
  refused(
    '256 options',
    {
      questions: {
        a: {
          type: 'choice',
          instructions: '?',
          criteria: Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`k${i}`, 'x'])),
        },
      },
    },
    /options per choice/,
  ),
  refused('a field of a question that is not known', { questions: { a: { ...noul, x: 1 } } }, /not a field/),
  ...(
    [
      ['model_not_found', 404, 'NOT_FOUND'],
      ['overloaded', 429, 'RESOURCE_EXHAUSTED'],
      ['engine_failed', 500, 'INTERNAL'],
    ] as const
  ).map(
    ([code, number, status]): Row => ({
      name: `${path}: ${number} ${status}`,
      script: failed(code),
      request: { path, json: body() },
      expect: { status: number, json: failure(number, status) },
    }),
  ),
  ...['/api/alpha/decisions', '/api/alpha/systemone'].flatMap((alpha): Row[] => [
    {
      name: `${alpha}: System One`,
      request: { path: alpha, json: openRouter },
      expect: { like: { model, answers: { a: { type: 'noul' } }, usage: { input_tokens: 10 } } },
    },
    {
      name: `${alpha}: errors with the status as their code`,
      request: { path: alpha, json: { ...openRouter, questions: {} } },
      expect: { status: 400, json: failure(400, 'INVALID_ARGUMENT') },
    },
  ]),
];
