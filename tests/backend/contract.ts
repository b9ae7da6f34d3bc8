import { expect, it } from 'vitest';
import type { Call, ChatEvent, ChatRequest, InferenceBackend, Task, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';

/** A backend under test. */
export interface Subject {
  backend: InferenceBackend;
  /** The id of its active model. */
  model: string;
  /** False for a backend that refuses every chat. */
  chats: boolean;
}

const TASKS: readonly Task[] = [
  { type: 'decide', name: 'options', question: 'Is it wet?', options: ['yes', 'no', 'yes and "no"'] },
  { type: 'decide', name: '10', question: 'Is it late?', options: ['only'] },
  { type: 'extract', name: '__proto__', instruction: 'Who?', shape: { kind: 'keys', keys: ['name', '2'] } },
  { type: 'decide', name: 'late', question: 'Is it late?', options: ['yes', 'no'] },
];

const CHAT = {
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  maxTokens: 4,
  stop: [],
  presencePenalty: 0,
  frequencyPenalty: 0,
  format: { type: 'text' },
} as const satisfies ChatRequest;

/** A call that counts its admissions. */
interface CountedCall extends Call {
  admissions: number;
}

function countedCall({ refusal, signal }: { refusal?: AssayError; signal?: AbortSignal } = {}): CountedCall {
  const call: CountedCall = {
    requestId: 'contract',
    signal: signal ?? new AbortController().signal,
    admissions: 0,
    async admit() {
      call.admissions++;
      if (refusal) throw refusal;
    },
  };
  return call;
}

const rateLimited = () => new AssayError('rate_limited', 'Wait.', { retryAfterSeconds: 3 });

/**
 * Registers the tests of the promises of `InferenceBackend` (lib/backend.ts). Handlers rely on these promises and don't
 * check them again: every backend runs this suite.
 */
export function backendContract(subject: () => Subject): void {
  const batch = (more: Partial<TaskBatch> = {}): TaskBatch => ({
    model: subject().model,
    input: { context: 'The parcel came on Monday. The box was wet.\nname: Ana' },
    media: [],
    tasks: TASKS,
    temperature: 0,
    maxOutputTokens: 256,
    ...more,
  });
  const runTasks = (call: Call, more?: Partial<TaskBatch>) => subject().backend.runTasks(batch(more), call);
  const chat = (call: Call, more?: Partial<ChatRequest>) =>
    eventsOf(subject().backend.chat({ ...CHAT, ...more }, call));

  it('lists its active model', async () => {
    const { backend, model } = subject();
    expect(await backend.listModels(countedCall())).toContainEqual(expect.objectContaining({ id: model }));
  });

  it('answers with its active model if the batch names none', async () => {
    const { model: _, ...unnamed } = batch();
    expect((await subject().backend.runTasks(unnamed, countedCall())).model).toBe(subject().model);
  });

  it('answers every task once, in the order sent, as JSON of its shape', async () => {
    const answer = await runTasks(countedCall());
    expect(answer.model).toBe(subject().model);
    expect(answer.answers.map(({ name }) => name)).toEqual(TASKS.map(({ name }) => name));
    for (const [i, task] of TASKS.entries()) expectShape(task, answer.answers[i]?.json ?? '');
    expect(answer.usage.promptTokens).toBeGreaterThan(0);
  });

  it('gives the probability of every option and of every value, where it was asked for', async () => {
    const { answers } = await runTasks(countedCall(), { probabilities: { calibrated: true } });
    for (const [i, task] of TASKS.entries()) {
      const { json, optionLogprobs, fields } = answers[i]!;
      if (task.type === 'extract') {
        for (const { probability } of fields ?? []) expect(probability).toBeGreaterThanOrEqual(0);
        expect(fields?.every(({ probability }) => probability <= 1)).toBe(true);
        continue;
      }
      expect(optionLogprobs).toHaveLength(task.options!.length);
      const sum = optionLogprobs!.reduce((total, logprob) => total + Math.exp(logprob), 0);
      expect(Math.abs(sum - 1)).toBeLessThan(1e-6);
      const best = optionLogprobs!.indexOf(Math.max(...optionLogprobs!));
      expect(JSON.parse(json)).toEqual({ value: task.options![best] });
    }
  });

  it('gives answers without probabilities where none were asked for', async () => {
    for (const answer of (await runTasks(countedCall())).answers) expect(Object.keys(answer)).toEqual(['name', 'json']);
  });

  it('admits a batch exactly once', async () => {
    const call = countedCall();
    await runTasks(call);
    expect(call.admissions).toBe(1);
  });

  it.each(['test/absent', '../../etc', 'gpt-4o'])(
    'refuses the unknown model %s without admitting it',
    async (model) => {
      const call = countedCall();
      const expected = { code: 'model_not_found', param: 'model' };
      await expect(runTasks(call, { model })).rejects.toMatchObject(expected);
      if (subject().chats) expect(await chat(call, { model })).toMatchObject({ events: [], error: expected });
      expect(call.admissions).toBe(0);
    },
  );

  it('answers nothing when the admission is refused', async () => {
    const refusal = rateLimited();
    await expect(runTasks(countedCall({ refusal }))).rejects.toBe(refusal);
    const { events, error } = await chat(countedCall({ refusal }));
    expect(events).toEqual([]);
    if (subject().chats) expect(error).toBe(refusal);
  });

  it('answers nothing to a caller that has left', async () => {
    const signal = AbortSignal.abort();
    await expect(runTasks(countedCall({ signal }))).rejects.toThrow();
    const { events, error } = await chat(countedCall({ signal }));
    expect(events).toEqual([]);
    expect(error).toBeDefined();
  });

  it('begins a chat with one start and ends it with one finish, admitted once', async () => {
    const call = countedCall();
    const { events, error } = await chat(call);
    if (!subject().chats) {
      expect(error).toBeInstanceOf(AssayError);
      expect([call.admissions, events]).toEqual([0, []]);
      return;
    }
    expect(error).toBeUndefined();
    const types = events.map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['start', 'finish']);
    for (const type of types.slice(1, -1)) expect(['reasoning', 'content']).toContain(type);
    expect(events[0]).toMatchObject({ model: subject().model });
    expect(call.admissions).toBe(1);
  });
}

/** Reads a chat to its end, or to the error that ends it. */
async function eventsOf(chat: AsyncIterable<ChatEvent>): Promise<{ events: ChatEvent[]; error?: unknown }> {
  const events: ChatEvent[] = [];
  try {
    for await (const event of chat) events.push(event);
  } catch (error) {
    return { events, error };
  }
  return { events };
}

function expectShape(task: Task, json: string): void {
  const value = JSON.parse(json);
  if (task.type === 'decide') {
    expect(Object.keys(value)).toEqual(['value']);
    expect(task.options).toContain(value.value);
  } else {
    const keys = task.shape.kind === 'keys' ? task.shape.keys : [];
    expect(Object.keys(value).sort()).toEqual([...keys].sort());
  }
}
