import { expect, test } from 'vitest';
import type { BatchAnswer, InferenceBackend, Task, TaskBatch } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import { parseModelId } from '../lib/model-id.ts';
import { DEFAULT_MODEL } from '../tests/scripted-backend/backend.ts';
import { createApp } from './app.ts';

/* An extractor that reads sentences such as "The tenant is Bo Lee.", and counts words as tokens. */

const LIMIT = 3000;
const INSTRUCTIONS = 60;
const words = (text: string) => text.match(/\S+/g)?.length ?? 0;

function answer({ tasks, input }: TaskBatch): BatchAnswer {
  const text = 'context' in input ? input.context : '';
  const stateTokens = words(text) + INSTRUCTIONS;
  if (stateTokens > LIMIT) throw new AssayError('input_too_long', 'Too long.');
  return {
    model: DEFAULT_MODEL,
    answers: tasks.map((task) => taskAnswer(task, text)),
    finishReason: 'stop',
    usage: { promptTokens: stateTokens + 10, stateTokens, completionTokens: 1 },
  };
}

function taskAnswer(task: Task, text: string) {
  if (task.type === 'decide') throw new Error('decides nothing');
  const name = task.instruction;
  const value = new RegExp(`The ${name} is ([^.]+)\\.`).exec(text)?.[1];
  // Without the sentence it guesses, as models do.
  const guess = value ?? text.slice(0, 40).trim().split(' ')[0] ?? '';
  const json = JSON.stringify({ [name]: guess });
  const fields = [{ path: `/${name}`, probability: value ? 0.9 : 0.2 }];
  return { name: task.name, json, fields, absent: value ? 0.03 : 0.94, certainty: value ? 0.8 : 0.1 };
}

function backendOf(runTasks: InferenceBackend['runTasks']): InferenceBackend {
  const capabilities = {
    ...({ decide: 'any', extract: 'schema', chat: true, abstains: false } as const),
    ...{ max_tokens: LIMIT, max_options: 255 },
  };
  return {
    listModels: async () => [{ id: parseModelId('assay/starter'), status: 'active', capabilities }],
    runTasks,
    chat: () => {
      throw new Error('no chat');
    },
  };
}

function app() {
  let asked = 0;
  const backend = backendOf(async (batch) => {
    asked++;
    return answer(batch);
  });
  const keys = { find: async () => ({ name: 'k', models: ['*'], scopes: [] }) };
  const { fetch } = createApp({ backend, keys });
  const post = async (body: object) => {
    const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
    const response = await fetch(
      new Request('http://x/v1/extractions', { method: 'POST', headers, body: JSON.stringify(body) }),
    );
    return { status: response.status, body: await response.json() };
  };
  return { post, asked: () => asked };
}

const FACTS: Record<string, string> = {
  tenant: 'Margaret Olufsen',
  landlord: 'Northgate Holdings Ltd',
  deposit: '4250 euros',
  'notice period': 'ninety days',
  'bank account': 'DE44 5001 0517',
  broker: 'Tomáš Vejvoda 😀',
  'parking space': 'P-17',
  'governing law': 'that of Denmark',
  'start date': '14 March 2027',
  'invoice number': 'INV-88213',
};

/** Writes a document of pages of about 450 words, ten of which have a fact each. */
function document(pages: number): string {
  const names = Object.keys(FACTS);
  return Array.from({ length: pages }, (_, page) => {
    const sentences = Array.from({ length: 38 }, (_, i) => {
      const n = page * 38 + i;
      return `Clause ${n} says that party ${n % 7} keeps copy ${(n * 7919) % 1009} of the papers 😀 in order.`;
    });
    const fact = page % Math.floor(pages / 10) === 3 ? names[Math.floor(page / (pages / 10))] : undefined;
    if (fact) sentences.splice((page * 5) % 38, 0, `The ${fact} is ${FACTS[fact]}.`);
    return sentences.join(' ');
  }).join('\n\n');
}

const fields = Object.fromEntries(Object.keys(FACTS).map((name) => [name, { type: 'text' }]));

test('finds ten facts on 200 pages, with their places', async () => {
  const state = document(200);
  const { post, asked } = app();
  const { status, body } = await post({ state, fields, windows: {} });
  expect(status).toBe(200);
  const characters = [...state];
  for (const [name, value] of Object.entries(FACTS)) {
    const { value: found, span, x_window: window, p_null, x_calibrated } = body.answers[name];
    expect(found).toBe(value);
    expect(characters.slice(...span).join('')).toBe(value);
    expect(characters.slice(span[0] - `The ${name} is `.length, span[0]).join('')).toBe(`The ${name} is `);
    expect(window.start).toBeLessThanOrEqual(span[0]);
    expect(window.end).toBeGreaterThanOrEqual(span[1]);
    expect([p_null, x_calibrated]).toEqual([0.03, false]);
  }
  expect(body.usage.passes).toBeLessThanOrEqual(64);
  expect(asked()).toBeLessThanOrEqual(body.usage.passes + 4);
});

test('reads a text that fits as a whole, and refuses one that needs more than 64 windows with both numbers', async () => {
  const { post, asked } = app();
  const { body } = await post({
    state: document(10).slice(0, 3000),
    fields: { tenant: { type: 'text' } },
    windows: {},
  });
  expect(body).toMatchObject({ answers: { tenant: { x_window: { count: 1 } } }, usage: { passes: 1 } });
  expect(body.answers.tenant).not.toHaveProperty('x_calibrated');
  expect(asked()).toBe(1);
  const long = await post({ state: document(600), fields: { tenant: { type: 'text' } }, windows: {} });
  expect(long).toMatchObject({
    status: 400,
    body: {
      error: {
        code: 'input_too_long',
        message: expect.stringMatching(/needs (at least )?\d+ windows of about \d+ tokens, .* 64/),
      },
    },
  });
});

test('cuts a window further whose words are shorter than those before', async () => {
  const { post } = app();
  const dense = 'a b c d e f '.repeat(800);
  const state = `${document(40)}\n\n${dense}The tenant is Bo.\n\n${dense}`;
  const { body } = await post({ state, fields: { tenant: { type: 'text' } }, windows: {} });
  const start = [...state.slice(0, state.lastIndexOf('Bo.'))].length;
  const found = body.answers.tenant;
  expect([found.value, found.span]).toEqual(['Margaret Olufsen', expect.anything()]);
  expect(found.x_candidates).toMatchObject([{ value: 'Bo', span: [start, start + 2] }]);
});

test('counts the parts of windows that did not fit among the 64', async () => {
  const { post, asked } = app();
  const state = `${document(10)}\n\n${'a b c d e f '.repeat(40_000)}`;
  const { status, body } = await post({ state, fields: { tenant: { type: 'text' } }, windows: {} });
  expect([status, body.error.message]).toEqual([400, expect.stringMatching(/needs more than 64 windows/)]);
  expect(asked()).toBeLessThan(300);
});

test('reads one window of a text that begins with short words before it refuses it', async () => {
  const { post, asked } = app();
  const state = 'a '.repeat(190_000);
  const { status, body } = await post({ state, fields: { tenant: { type: 'text' } }, windows: {} });
  expect([status, body.error.code]).toEqual([400, 'input_too_long']);
  // Once it did not fit.
  expect(asked()).toBe(2);
});

test.each([
  [{ state: 'x', windows: { combine: 'mean' } }, 'windows.combine'],
  [{ state: 'x', windows: { size: 100, overlap: 60 } }, 'windows.overlap'],
  [{ state: 'x', windows: { size: 1 } }, 'windows.size'],
  [{ state: 'x', windows: { sice: 100 } }, 'windows.sice'],
])('refuses what has no meaning (%#)', async (more, param) => {
  const { status, body } = await app().post({ fields: { tenant: { type: 'text' } }, ...more });
  expect([status, body.error.param]).toEqual([400, param]);
});

test('answers a choice from the notes of the windows with "reduce", and other questions as before', async () => {
  const asked: { context: string; types: string[] }[] = [];
  const { fetch } = createApp({
    backend: backendOf(async (batch) => {
      const context = 'context' in batch.input ? batch.input.context : '';
      const stateTokens = words(context) + INSTRUCTIONS;
      if (stateTokens > LIMIT) throw new AssayError('input_too_long', 'Too long.');
      asked.push({ context, types: batch.tasks.map(({ type }) => type) });
      const answers = batch.tasks.map((task) => {
        const note = /complains about [a-z]+/.exec(context)?.[0] ?? null;
        if (task.type === 'extract') return { name: task.name, json: JSON.stringify({ notes: note }), fields: [] };
        const options = task.options ?? [];
        const likely = task.kind === 'predicate' ? 0 : options.findIndex((option) => context.includes(option));
        const optionLogprobs = options.map((_, i) => Math.log(i === likely ? 0.9 : 0.1 / (options.length - 1)));
        return { name: task.name, json: JSON.stringify({ value: options[likely] ?? options[0] }), optionLogprobs };
      });
      return {
        ...{ model: DEFAULT_MODEL, answers, finishReason: 'stop' as const },
        usage: { promptTokens: stateTokens, stateTokens, completionTokens: 1 },
      };
    }),
    keys: { find: async () => ({ name: 'k', models: ['*'], scopes: [] }) },
  });
  const filler = Array.from({ length: 600 }, (_, i) => `Clause ${i} says that all is well with party ${i % 9}.`);
  filler.splice(100, 0, 'Ann complains about noise.');
  filler.splice(500, 0, 'Bo complains about rent.');
  const state = filler.join(' ');
  const questions = {
    topic: { type: 'choice', instructions: 'What is complained about first?', criteria: ['noise', 'rent', 'heat'] },
    calm: { type: 'noul', instructions: 'Is it calm?' },
  };
  const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
  const body = JSON.stringify({ state, questions, windows: { size: 500, combine: 'reduce' } });
  const response = await fetch(new Request('http://x/v1/systemone', { method: 'POST', headers, body }));
  expect(response.status).toBe(200);
  const { answers, usage } = await response.json();
  expect(asked.at(-1)).toEqual({ context: 'complains about noise\ncomplains about rent', types: ['decide'] });
  const windows = asked.slice(0, -1);
  expect(windows.length).toBeGreaterThan(10);
  for (const { types } of windows) expect(types).toEqual(['extract', 'decide']);
  const x_window = { index: 0, count: windows.length, start: 0, end: state.length };
  expect(answers.topic).toMatchObject({ choice: 'noise', x_window, x_calibrated: false });
  expect(answers.calm).toMatchObject({ noul: expect.closeTo(0.9), x_window: { count: windows.length } });
  expect(usage.output_tokens).toBe(asked.length);
});
