import { expect, test } from 'vitest';
import type { Call, DecideTask, InferenceBackend, TaskAnswer, TaskBatch } from '../backend.ts';
import { parseModelId } from '../model-id.ts';
import { askModel, askSystemOne, escalating } from './escalation.ts';

const [small, large] = [parseModelId('a/small'), parseModelId('a/large')];
const call: Call = { requestId: 'r', signal: new AbortController().signal, admit: async () => undefined };
const question = (name: string, more: Partial<DecideTask> = {}): DecideTask => ({
  type: 'decide',
  name,
  question: 'Q?',
  options: ['yes', 'no'],
  kind: 'predicate',
  ...more,
});
const sure = (name: string, p: number, more: Partial<TaskAnswer> = {}): TaskAnswer => ({
  name,
  json: '{"value":"yes"}',
  optionLogprobs: [Math.log(p), Math.log(1 - p)],
  ...more,
});
const batchOf = (...tasks: TaskBatch['tasks']): TaskBatch => ({
  input: { context: 'text' },
  media: [],
  tasks,
  temperature: 0,
  maxOutputTokens: 16,
  probabilities: { calibrated: true },
});
const backendOf = (...answers: TaskAnswer[]): InferenceBackend => ({
  listModels: async () => [],
  runTasks: async () => ({
    model: small,
    answers,
    finishReason: 'stop',
    usage: { promptTokens: 1, completionTokens: 1 },
  }),
  // biome-ignore lint/correctness/useYield: chats are not asked here
  async *chat() {
    throw new Error('no chat');
  },
});

test('asks only uncertain questions again, and says who answered', async () => {
  const asked: TaskBatch[] = [];
  const backend = escalating(
    backendOf(sure('a', 0.9), sure('b', 0.6), sure('c', 0.95, { automated: false }), sure('d', 0.5)),
    {
      below: 0.8,
      ask: async (batch) => {
        asked.push(batch);
        return { model: large, answers: batch.tasks.map(({ name }) => sure(name, 0.99)) };
      },
    },
  );
  const batch = batchOf(question('a'), question('b'), question('c'), question('d', { first: true }));
  const { model, answers } = await backend.runTasks(batch, call);
  expect(model).toBe(small);
  expect(asked.map(({ tasks }) => tasks.map(({ name }) => name))).toEqual([['b', 'c']]);
  expect(answers.map(({ answeredBy }) => answeredBy)).toEqual([small, large, large, small]);
  expect(answers.map(({ escalation }) => escalation)).toEqual([undefined, undefined, undefined, undefined]);
});

test('tasks that ask for no probabilities are weighed, too, unless their answers are drawn', async () => {
  const seen: (TaskBatch['probabilities'] | null)[] = [];
  const plain = backendOf(sure('a', 0.6));
  const runTasks: InferenceBackend['runTasks'] = (batch, given) => {
    seen.push(batch.probabilities ?? null);
    return plain.runTasks(batch, given);
  };
  const ask = async () => ({ model: large, answers: [sure('a', 0.99)] });
  const backend = escalating({ ...plain, runTasks }, { below: 0.8, ask });
  const { probabilities: _, ...batch } = batchOf(question('a'));
  expect((await backend.runTasks(batch, call)).answers).toMatchObject([{ answeredBy: large }]);
  await backend.runTasks({ ...batch, temperature: 1 }, call);
  expect(seen).toEqual([{ calibrated: true }, null]);
});

test('a failed second model leaves the first answer, which says so', async () => {
  const ask = () => Promise.reject(new Error('down'));
  const { answers } = await escalating(backendOf(sure('a', 0.6)), { below: 0.8, ask }).runTasks(
    batchOf(question('a')),
    call,
  );
  expect(answers).toEqual([sure('a', 0.6, { answeredBy: small, escalation: 'failed' })]);
});

test('a key that may not use the second model keeps the first answer', async () => {
  const backend = backendOf(sure('a', 0.6));
  const ask = askModel(backend, large);
  const batch = batchOf(question('a'));
  const [only] = (await escalating(backend, { below: 0.8, ask }).runTasks(batch, { ...call, allows: () => false }))
    .answers;
  expect(only).toMatchObject({ answeredBy: small, escalation: 'failed' });
  const [other] = (await escalating(backend, { below: 0.8, ask }).runTasks(batch, { ...call, allows: () => true }))
    .answers;
  expect(other?.escalation).toBeUndefined();
});

test('asks nobody if all answers are certain enough', async () => {
  const ask = () => Promise.reject(new Error('asked'));
  const { answers } = await escalating(backendOf(sure('a', 0.9)), { below: 0.8, ask }).runTasks(
    batchOf(question('a')),
    call,
  );
  expect(answers).toEqual([sure('a', 0.9, { answeredBy: small })]);
});

test('a server is asked in System One, and its probabilities are those of the options', async () => {
  const sent: { url: string; body: unknown; headers: unknown }[] = [];
  const fetched = async (url: unknown, init?: RequestInit) => {
    sent.push({ url: String(url), body: JSON.parse(String(init?.body)), headers: init?.headers });
    const answers = {
      q0: { type: 'noul', noul: 0.75 },
      q1: { type: 'choice', choice: 'x', probabilities: { x: 0.25, y: 0.75 }, confidence: 0.5 },
      q2: { type: 'score', score: 0.25, legend: {}, probabilities: { 0: 0.75, 1: 0.25 }, confidence: 0.5 },
    };
    return Response.json({ model: 'far', answers });
  };
  const ask = askSystemOne({
    url: 'https://far.example/v1/',
    key: 'k',
    fetch: fetched as typeof fetch,
    timeoutMs: 1000,
  });
  const tasks = [
    question('a', { descriptions: ['A', null] }),
    question('b', { kind: 'choice', options: ['x', 'y'], instruction: 'Careful' }),
    question('c', { kind: 'score', options: ['low', 'high'] }),
  ];
  const { model, answers } = await ask(batchOf(...tasks), call);
  expect(sent).toEqual([
    {
      url: 'https://far.example/v1/systemone',
      headers: { 'content-type': 'application/json', 'x-request-id': 'r', authorization: 'Bearer k' },
      body: {
        state: 'text',
        questions: {
          q0: { type: 'noul', instructions: 'Q?', criteria: { true: 'A', false: null } },
          q1: {
            type: 'choice',
            instructions: 'Q?\nCareful',
            criteria: [
              { key: 'x', description: null },
              { key: 'y', description: null },
            ],
          },
          q2: { type: 'score', instructions: 'Q?', criteria: ['low', 'high'] },
        },
      },
    },
  ]);
  expect(model).toBe('far');
  const probabilities = answers.map(({ optionLogprobs }) =>
    optionLogprobs?.map((one) => Number(Math.exp(one).toFixed(9))),
  );
  expect(probabilities).toEqual([
    [0.75, 0.25],
    [0.25, 0.75],
    [0.75, 0.25],
  ]);
  expect(answers.map(({ json }) => json)).toEqual(['{"value":"yes"}', '{"value":"y"}', '{"value":"low"}']);
});

test.each([
  ['another status', new Response('no', { status: 500 })],
  ['another body', Response.json({ answers: [] })],
  ['a question left out', Response.json({ model: 'far', answers: {} })],
])('%s is a failure', async (_, response) => {
  const ask = askSystemOne({
    url: 'https://far.example',
    fetch: (async () => response) as typeof fetch,
    timeoutMs: 1000,
  });
  await expect(ask(batchOf(question('a')), call)).rejects.toThrow();
});

test('what is asked again is counted against the quota, and the first answer stays if that has too little left', async () => {
  const counted: (number | undefined)[] = [];
  const refusing = { left: 1 };
  const counting: Call = {
    ...call,
    async admit(tokens) {
      if (refusing.left-- <= 0) throw new Error('rate_limited');
      counted.push(tokens);
    },
    recount: async (tokens) => void counted.push(tokens),
  };
  const second: InferenceBackend = {
    ...backendOf(),
    async runTasks(batch, { admit, recount }) {
      await admit(70, large);
      await recount?.(50);
      return { ...(await backendOf(sure('a', 0.99)).runTasks(batch, call)), model: large };
    },
  };
  const backend = escalating(backendOf(sure('a', 0.6)), { below: 0.8, ask: askModel(second, large) });
  const asked = async () => (await backend.runTasks(batchOf(question('a')), counting)).answers[0];
  expect(await asked()).toMatchObject({ answeredBy: large });
  expect(counted).toEqual([70, 50]);
  expect(await asked()).toMatchObject({ answeredBy: small, escalation: 'failed' });
  const ask = askSystemOne({ url: 'https://far.example', fetch: () => expect.fail('it was asked'), timeoutMs: 1000 });
  await expect(ask(batchOf(question('a')), counting)).rejects.toThrow('rate_limited');
});
