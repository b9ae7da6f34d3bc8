import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { BatchAnswer, Task, TaskBatch } from '../../lib/backend.ts';
import { type Machine, MODEL, newCall, startMachine } from './machine.ts';

const CONTEXT = 'The parcel came on Monday. The box was wet and the lamp was broken. Ana Ruiz asks for 12.50 back.';
const TASKS: Task[] = [
  { type: 'extract', name: 'who', instruction: 'name and amount', shape: { kind: 'keys', keys: ['name', 'amount'] } },
  { type: 'decide', name: 'free', question: 'What is broken?' },
  { type: 'decide', name: 'wet', question: 'Is it wet?', options: ['yes', 'no', 'yes and "no"'] },
  { type: 'decide', name: 'why', question: 'Is it wet?', options: ['yes', 'no'], instruction: 'Say why.' },
  { type: 'decide', name: '10', question: 'Only one?', options: ['only'] },
  {
    type: 'extract',
    name: '__proto__',
    instruction: 'count',
    shape: {
      kind: 'schema',
      schema: {
        type: 'object',
        properties: { n: { type: 'integer', minimum: 0, maximum: 9 } },
        required: ['n'],
        additionalProperties: false,
      },
    },
  },
  { type: 'extract', name: 'open', instruction: 'anything', shape: { kind: 'open' } },
];

const batch = (tasks: readonly Task[], more: Partial<TaskBatch> = {}): TaskBatch => ({
  model: MODEL,
  input: { context: CONTEXT },
  media: [],
  tasks,
  temperature: 0,
  maxOutputTokens: 400,
  ...more,
});

describe.each(['optimum/qwen3', 'genai/llama', 'genai/gemma3'])('%s', (fixture) => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await startMachine(fixture);
  });
  afterAll(() => machine.close());

  it('answers every task in the order sent, as JSON of its shape', async () => {
    const { answers, usage, finishReason, model } = await machine.backend.runTasks(batch(TASKS), newCall());
    expect(model).toBe(MODEL);
    expect(answers.map(({ name }) => name)).toEqual(TASKS.map(({ name }) => name));
    const values = answers.map(({ json }) => JSON.parse(json));
    expect(Object.keys(values[0])).toEqual(['name', 'amount']);
    expect(['yes', 'no', 'yes and "no"']).toContain(values[2].value);
    expect(['yes', 'no']).toContain(values[3].value);
    expect(values[4]).toEqual({ value: 'only' });
    expect(Object.keys(values[2])).toEqual(['value']);
    if (finishReason === 'stop') expect(values[5].n).toBeGreaterThanOrEqual(0);
    expect(usage.promptTokens).toBeGreaterThan(100);
    expect(usage.completionTokens).toBeLessThanOrEqual(400);
  });

  it('gives each task the answer that it gets alone', async () => {
    const maxOutputTokens = 4096;
    const together = await machine.backend.runTasks(batch(TASKS.slice(0, 4), { maxOutputTokens }), newCall());
    for (const [i, task] of TASKS.slice(0, 4).entries()) {
      const alone = await machine.backend.runTasks(batch([task], { maxOutputTokens }), newCall());
      expect(alone.answers).toEqual([together.answers[i]]);
    }
  });

  it('spends the budget on decisions first, and what is cut ends as JSON', async () => {
    const { answers, usage, finishReason, cut } = await machine.backend.runTasks(
      batch(TASKS, { maxOutputTokens: 4 }),
      newCall(),
    );
    expect(finishReason).toBe('length');
    expect(cut?.names).toEqual(expect.arrayContaining([TASKS[0]!.name, TASKS[5]!.name]));
    expect(cut?.names).not.toContain(TASKS[2]!.name);
    expect(cut?.names).not.toContain(TASKS[4]!.name);
    expect(usage.completionTokens).toBeLessThanOrEqual(4);
    const values = answers.map(({ json }) => JSON.parse(json));
    expect(['yes', 'no', 'yes and "no"']).toContain(values[2].value);
    expect(values[0]).toEqual({ name: null, amount: null });
    expect(values[5]).toEqual({ n: null });
    expect(values[4]).toEqual({ value: 'only' });
  });

  it('leaves a decision that was not settled empty', async () => {
    const many = Array.from({ length: 40 }, (_, i): Task => ({ ...TASKS[2]!, name: `t${i}` }) as Task);
    const { answers, finishReason } = await machine.backend.runTasks(batch(many, { maxOutputTokens: 3 }), newCall());
    expect(finishReason).toBe('length');
    const values = answers.map(({ json }) => JSON.parse(json).value);
    expect(values[0]).not.toBe('');
    expect(values.at(-1)).toBe('');
    expect(values.lastIndexOf(values[0])).toBeLessThan(values.indexOf(''));
  });

  it('keeps an option where the budget ends before it is known whether a reason follows', async () => {
    const settled: Task = { type: 'decide', name: 'a', question: 'q', options: ['yes', 'no'], instruction: 'Why?' };
    const single: Task = { ...settled, name: 'b', options: ['one'] };
    const ask = async (maxOutputTokens: number) => {
      const { answers, finishReason, usage } = await machine.backend.runTasks(
        batch([settled, single], { maxOutputTokens }),
        newCall(),
      );
      return { values: answers.map(({ json }) => JSON.parse(json)), finishReason, usage };
    };
    const [one, more] = [await ask(1), await ask(200)];
    expect(one).toMatchObject({ finishReason: 'length', usage: { completionTokens: 1 } });
    expect(one.values).toEqual([{ value: more.values[0].value }, { value: 'one' }]);
  });

  it('counts the shared prefix once', async () => {
    const count = async (tasks: readonly Task[]) =>
      (await machine.backend.runTasks(batch(tasks), newCall())).usage.promptTokens;
    const [a, b, both] = [await count([TASKS[2]!]), await count([TASKS[4]!]), await count([TASKS[2]!, TASKS[4]!])];
    const again = await count([TASKS[2]!, { ...TASKS[2]!, name: 'again' } as Task]);
    const own = again - a;
    expect(both - b).toBe(own);
    expect(own).toBeLessThan(a / 2);
  });

  it('refuses what is too long, and gives both counts', async () => {
    const long = batch(TASKS, { input: { context: 'word '.repeat(2000) } });
    await expect(machine.backend.runTasks(long, newCall())).rejects.toMatchObject({
      code: 'input_too_long',
      message: expect.stringMatching(/maximum context length is 512 tokens.*the input has (?:more than )?\d{4,}/u),
    });
  });

  it.each([
    ['by address', { type: 'url' as const, url: 'https://a/b.png' }],
    ['of a type that is as long as a body may be', { type: 'base64' as const, data: 'AA', mimeType: 'w'.repeat(2e7) }],
  ])('refuses images %s', async (_, source) => {
    const media = [{ type: 'image' as const, source, param: 'images[0]' }];
    await expect(machine.backend.runTasks(batch(TASKS, { media }), newCall())).rejects.toMatchObject({
      code: 'unsupported_modality',
      param: 'images[0]',
    });
  });
});

describe('many callers at once', () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await startMachine('optimum/qwen2', { admission: { tokens: 4_000 } });
  });
  afterAll(() => machine.close());

  it('each get the answer that they get alone, and those who leave take nothing from the others', {
    timeout: 60_000,
  }, async () => {
    const asked = Array.from({ length: 6 }, (_, i) =>
      batch(TASKS.slice(0, 1 + (i % 4)), { input: { context: `${CONTEXT} Order ${i % 3}.` }, maxOutputTokens: 24 }),
    );
    const alone: BatchAnswer[] = [];
    for (const one of asked) alone.push(await machine.backend.runTasks(one, newCall()));
    const callers = Array.from({ length: 24 }, async (_, i) => {
      const leave = new AbortController();
      if (i % 3 === 0) setTimeout(() => leave.abort(), i * 5);
      const answer = await machine.backend
        .runTasks(asked[i % asked.length]!, newCall(leave.signal))
        .catch((error) => error);
      if (leave.signal.aborted && answer instanceof Error) return;
      expect(answer).toEqual(alone[i % asked.length]);
    });
    await Promise.all(callers);
    await vi.waitFor(() => expect(machine.engine.status()).toMatchObject({ running: 0, waiting: 0 }), {
      timeout: 30_000,
    });
  });

  it('are told to wait when the queue is full', { timeout: 60_000 }, async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 120 }, () => machine.backend.runTasks(batch([TASKS[2]!]), newCall())),
    );
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(120);
    for (const error of refused) {
      expect(error).toMatchObject({ code: 'overloaded' });
      expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    }
  });
});
