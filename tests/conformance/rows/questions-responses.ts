import { expect } from 'vitest';
import type { Script } from '../../scripted-backend/script.ts';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const text = 'Order A-1042 cost 49.90 euro, A-1042.';
const usage = { promptTokens: 40, completionTokens: 3 };
const tasks = (script: Script['tasks']) => ({ tasks: { usage, ...script } });

const predicate = { type: 'predicate', instructions: 'Paid?' };
const choice = {
  type: 'choice',
  instructions: 'Team?',
  choices: [{ value: 'billing' }, { value: true }, { value: 'true' }],
};
const score = {
  type: 'score',
  instructions: 'How angry?',
  levels: [{ label: 'calm' }, { label: 'cross' }, { label: 'angry' }],
};
const extract = { type: 'extract', instructions: 'The order.', keys: ['10', 'id'] };

const decided = (
  name: string,
  question: object,
  script: Script['tasks'],
  answer: object,
  fields: object = {},
): Row => ({
  name: `/v1/decisions: ${name}`,
  script: tasks(script),
  request: { path: '/v1/decisions', json: { model, input: text, questions: [question], ...fields } },
  expect: { like: { model, answers: [answer] }, headers: { 'content-type': /^application\/json/ } },
});
const named = (name: string, question: object, script: Script['tasks'], answer: object, fields: object = {}): Row => ({
  name: `/v1/systemone: ${name}`,
  script: tasks(script),
  request: { path: '/v1/systemone', json: { model, state: text, questions: { a: question }, ...fields } },
  expect: { like: { model, answers: { a: answer } } },
});

const near = (value: number) => expect.closeTo(value, 9);
const [a, b, c] = [0.5, 0.25, 0.25];
/** 1 - H / ln 3, with H = 1.5 ln 2; and (1/2 - 1/3) / (2/3). */
const ENTROPY = 1 - (1.5 * Math.LN2) / Math.log(3);
const data = '{"10":"49.90","id":"A-1042"}';
const fields = (source: string) => [
  { path: '/10', value: '49.90', probability: 0.9, evidence: { source, start: 18, end: 23 } },
  { path: '/id', value: 'A-1042', probability: 0.9, evidence: { source, start: 6, end: 12 } },
];
const refund = (p: number) => ({ probabilities: [[p, 1 - p]] });

/** Each field of both formats' answers. */
export const questionsResponses: readonly Row[] = [
  {
    name: '/v1/decisions: usage, every field',
    script: tasks(refund(0.75)),
    request: { path: '/v1/decisions', json: { model, input: text, questions: [predicate] } },
    expect: {
      json: {
        model,
        answers: [{ type: 'predicate', name: null, probability: 0.75 }],
        usage: {
          input_tokens: 40,
          input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
          output_tokens: 3,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 43,
        },
      },
    },
  },
  decided('predicate: name', { ...predicate, name: 'paid' }, refund(0.25), {
    type: 'predicate',
    name: 'paid',
    probability: near(0.25),
  }),
  decided(
    'choice: typed values, in order',
    choice,
    { probabilities: [[a, b, c]] },
    {
      type: 'choice',
      name: null,
      choice: 'billing',
      confidence: near(ENTROPY),
      probabilities: [
        { value: 'billing', probability: near(a) },
        { value: true, probability: near(b) },
        { value: 'true', probability: near(c) },
      ],
    },
  ),
  decided('choice: a boolean', choice, { probabilities: [[0.2, 0.7, 0.1]] }, { choice: true }),
  decided('choice: a string like a boolean', choice, { probabilities: [[0.2, 0.1, 0.7]] }, { choice: 'true' }),
  decided(
    'choice: confidence by margin',
    choice,
    { probabilities: [[a, b, c]] },
    { confidence: near(0.25) },
    { confidence: 'margin' },
  ),
  decided(
    'choice: confidence of even chances',
    choice,
    { probabilities: [[1 / 3, 1 / 3, 1 / 3]] },
    { confidence: near(0) },
  ),
  decided(
    'score: labels, levels, the expected level',
    score,
    { probabilities: [[a, b, c]] },
    {
      type: 'score',
      name: null,
      score: near(0.75),
      confidence: near(ENTROPY),
      probabilities: [
        { label: 'calm', value: 0, probability: near(a) },
        { label: 'cross', value: 1, probability: near(b) },
        { label: 'angry', value: 2, probability: near(c) },
      ],
    },
  ),
  decided(
    'extract: data, fields, evidence',
    extract,
    { answers: [data] },
    {
      type: 'extract',
      name: null,
      data: JSON.parse(data),
      fields: fields('/input'),
      complete: true,
    },
  ),
  decided(
    'extract: what stands nowhere has no evidence',
    extract,
    { answers: ['{"10":null,"id":"B-1"}'] },
    {
      fields: [
        { value: null, evidence: null },
        { value: 'B-1', evidence: null },
      ],
    },
  ),
  decided(
    'extract: cut, with what was reached',
    extract,
    { answers: ['{"10":"49.90","id":null}'], reached: 1 },
    {
      fields: [{ path: '/10' }],
      complete: false,
    },
  ),
  decided(
    'refusal: a choice below the threshold',
    { ...choice, name: 'team' },
    { probabilities: [[a, b, c]] },
    { type: 'refusal', name: 'team' },
    { abstain_below: 0.6 },
  ),
  decided(
    'refusal: the model itself abstains from a choice',
    choice,
    { probabilities: [[a, b, c]], abstained: true },
    { type: 'refusal', x_probabilities: [near(a), near(b), near(c)] },
  ),
  decided(
    'refusal: the model itself abstains from a predicate',
    predicate,
    { ...refund(0.75), abstained: true },
    { type: 'refusal', x_probabilities: [near(0.75), near(0.25)] },
  ),
  decided(
    'no refusal: a choice at the threshold',
    choice,
    { probabilities: [[a, b, c]] },
    { type: 'choice' },
    { abstain_below: 0.5 },
  ),
  decided(
    'no refusal: a predicate and its probability',
    predicate,
    refund(0.5),
    { type: 'predicate' },
    { abstain_below: 0.9 },
  ),
  {
    name: '/v1/decisions: answers in the order of the questions, each on its own',
    script: tasks({
      probabilities: [
        [0.75, 0.25],
        [0.2, 0.7, 0.1],
        [a, b, c],
      ],
      answers: ['{}', '{}', '{}', data],
    }),
    request: { path: '/v1/decisions', json: { model, input: text, questions: [predicate, choice, score, extract] } },
    expect: { like: { answers: [{ type: 'predicate' }, { type: 'choice' }, { type: 'score' }, { type: 'extract' }] } },
  },
  {
    name: '/v1/decisions: the data of an extraction keeps the order of its members',
    script: tasks({ answers: ['{"b":"x","10":null,"__proto__":"y"}'] }),
    request: {
      path: '/v1/decisions',
      json: { model, input: text, questions: [{ ...extract, keys: ['b', '10', '__proto__'] }] },
    },
    expect: {
      text:
        '{"model":"assay/starter","answers":[{"type":"extract","name":null,"data":{"b":"x","10":null,"__proto__":"y"},"fields":[' +
        '{"path":"/b","value":"x","probability":0.9,"evidence":null},{"path":"/10","value":null,"probability":0.9,"evidence":null},' +
        '{"path":"/__proto__","value":"y","probability":0.9,"evidence":null}],"complete":true}],"usage":{"input_tokens":40,' +
        '"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":3,' +
        '"output_tokens_details":{"reasoning_tokens":0},"total_tokens":43}}',
    },
  },
  {
    name: '/v1/decisions: evidence in messages, with a pointer to the text',
    script: tasks({ answers: ['{"id":"A-1042","city":"Oslo"}'] }),
    request: {
      path: '/v1/decisions',
      json: {
        model,
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'About A-1042:' }] },
          { role: 'user', content: [{ type: 'input_json', data: { to: { city: 'Oslo' } } }] },
        ],
        questions: [{ ...extract, keys: ['id', 'city'] }],
      },
    },
    expect: {
      like: {
        answers: [
          {
            fields: [
              { evidence: { source: '/input/0/content/0/text', start: 6, end: 12 } },
              { evidence: { source: '/input/1/content/0/data/to/city', start: 0, end: 4 } },
            ],
          },
        ],
      },
    },
  },

  {
    name: '/v1/systemone: every field of a response',
    script: tasks(refund(0.75)),
    request: {
      path: '/v1/systemone',
      json: { model, state: text, questions: { paid: { type: 'noul', instructions: 'Paid?' } } },
    },
    expect: {
      json: { model, answers: { paid: { type: 'noul', noul: 0.75 } }, usage: { input_tokens: 40, output_tokens: 3 } },
    },
  },
  named(
    'choice: by label',
    { type: 'choice', criteria: { x: 'X', y: null, z: null } },
    { probabilities: [[b, a, c]] },
    {
      type: 'choice',
      choice: 'y',
      probabilities: { x: near(b), y: near(a), z: near(c) },
      confidence: near(0.25),
    },
  ),
  named(
    'choice: one label is certain',
    { type: 'choice', criteria: ['x'] },
    { probabilities: [[1]] },
    { choice: 'x', probabilities: { x: 1 }, confidence: 1 },
  ),
  named(
    'choice: confidence by entropy',
    { type: 'choice', criteria: ['x', 'y', 'z'] },
    { probabilities: [[a, b, c]] },
    { confidence: near(ENTROPY) },
    { confidence: 'entropy' },
  ),
  named(
    'choice: abstained from, with its probabilities',
    { type: 'choice', criteria: ['x', 'y', 'z'] },
    { probabilities: [[a, b, c]] },
    { choice: 'x', x_abstained: true, probabilities: { x: near(a) } },
    { abstain_below: 0.6 },
  ),
  named(
    'choice: the model itself abstains',
    { type: 'choice', criteria: ['x', 'y', 'z'] },
    { probabilities: [[a, b, c]], abstained: true },
    { choice: 'x', x_abstained: true, probabilities: { x: near(a) } },
  ),
  named(
    'noul: the model itself abstains',
    { type: 'noul', instructions: 'Paid?' },
    { ...refund(0.75), abstained: true },
    { noul: near(0.75), x_abstained: true },
  ),
  named(
    'score: the model itself abstains',
    { type: 'score', criteria: ['calm', 'angry'] },
    { probabilities: [[0.4, 0.6]], abstained: true },
    { score: near(0.6), x_abstained: true },
  ),
  named(
    'score: legend, probabilities by level',
    { type: 'score', criteria: ['calm', { is: 'cross' }, 'angry', null] },
    { probabilities: [[0.1, 0.6, 0.3, 0]] },
    {
      type: 'score',
      score: near(1.2),
      legend: { 0: 'calm', 1: { is: 'cross' }, 2: 'angry', 3: '3' },
      probabilities: { 0: near(0.1), 1: near(0.6), 2: near(0.3), 3: 0 },
      // 1 - (0.1 + 0.3) / 1, the mean distance of four levels from their middle
      confidence: near(0.6),
    },
  ),
  named(
    'extract: data, fields, evidence',
    { type: 'extract', keys: ['10', 'id'] },
    { answers: [data] },
    { type: 'extract', data: JSON.parse(data), fields: fields('/state'), complete: true },
  ),
  named(
    'extract: evidence inside JSON',
    { type: 'extract', keys: ['id'] },
    { answers: ['{"id":"A-1042"}'] },
    { fields: [{ evidence: { source: '/state/orders/0/a~1b', start: 1, end: 7 } }] },
    { state: { orders: [{ 'a/b': '#A-1042' }] } },
  ),
  {
    name: '/v1/systemone: names of the prototype are answers like others',
    script: tasks({
      probabilities: [
        [0.75, 0.25],
        [0.5, 0.5],
      ],
    }),
    request: {
      path: '/v1/systemone',
      body: `{"model":"${model}","state":"x","questions":{"__proto__":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}}`,
    },
    expect: {
      text:
        '{"model":"assay/starter","answers":{"__proto__":{"type":"noul","noul":0.75},"b":{"type":"noul","noul":0.5}},' +
        '"usage":{"input_tokens":40,"output_tokens":3}}',
    },
  },

  {
    name: '/v1/systemone: the label mass of each answer',
    script: tasks({ probabilities: [[0.75, 0.25]], labelMass: [0.125] }),
    request: {
      path: '/v1/systemone',
      json: { model, state: text, questions: { a: { type: 'noul', instructions: '?' } } },
    },
    expect: { like: { answers: { a: { type: 'noul', noul: 0.75, x_label_mass: 0.125 } } } },
  },
  {
    name: '/v1/decisions: the label mass of each answer',
    script: tasks({ probabilities: [[0.75, 0.25]], labelMass: [0.125] }),
    request: { path: '/v1/decisions', json: { model, input: text, questions: [predicate] } },
    expect: { like: { answers: [{ type: 'predicate', probability: 0.75, x_label_mass: 0.125 }] } },
  },
  {
    name: '/v1/systemone: questions and labels named by numbers keep their places',
    script: tasks({
      probabilities: [
        [0.75, 0.25],
        [0.25, 0.75],
      ],
    }),
    request: {
      path: '/v1/systemone',
      body:
        `{"model":"${model}","state":"x","confidence":"margin","questions":{"b":{"type":"noul","instructions":"?"},` +
        '"10":{"type":"choice","criteria":{"z":null,"2":null}}}}',
    },
    expect: {
      text:
        '{"model":"assay/starter","answers":{"b":{"type":"noul","noul":0.75},"10":{"type":"choice","choice":"2",' +
        '"probabilities":{"z":0.25,"2":0.75},"confidence":0.5}},' +
        '"usage":{"input_tokens":40,"output_tokens":3}}',
      calls: [{ call: 'runTasks', batch: { tasks: [{}, { options: ['z', '2'] }] } }, 'admit'],
    },
  },
  {
    name: 'a System One body at /v1/decisions is answered as System One',
    script: tasks(refund(0.75)),
    request: {
      path: '/v1/decisions',
      json: { model, state: text, questions: { a: { type: 'noul', instructions: 'Paid?' } } },
    },
    expect: {
      json: { model, answers: { a: { type: 'noul', noul: 0.75 } }, usage: { input_tokens: 40, output_tokens: 3 } },
    },
  },
  {
    name: 'a Decisions body at /v1/systemone is answered as Decisions',
    script: tasks(refund(0.75)),
    request: { path: '/v1/systemone', json: { model, input: text, questions: [predicate] } },
    expect: { like: { answers: [{ type: 'predicate', name: null, probability: 0.75 }] } },
  },
];
