import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { type Machine, startMachine } from '../engine-process/machine.ts';

/*
 * The official client on the real engine with a tiny model of random weights. Below zero, `frequency_penalty` makes
 * each token more probable the more often it occurred, so the model loops on every CPU.
 */

const messages = [{ role: 'user' as const, content: 'Tell me about the parcel.' }];
const looping = { model: 'test/tiny', messages, temperature: 0, frequency_penalty: -2, max_completion_tokens: 400 };

let machine: Machine;
let server: RunningServer;
let openai: OpenAI;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3', { chatMaxTokens: 200 });
  const app = createApp({ backend: machine.backend, apis: ['models'] });
  server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'placeholder', maxRetries: 0 });
});
afterAll(async () => {
  await server?.close(0);
  await machine?.close();
});

/** Returns the JSON Schema of an object with these strings. */
function strings(...names: string[]) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const schema = { type: 'object', properties, required: names, additionalProperties: false };
  return { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } } as const;
}

describe('an answer that repeats itself', () => {
  test('ends as one that is too long, before its tokens are used up', async () => {
    const { choices, usage } = await openai.chat.completions.create(looping);
    expect(choices[0]?.finish_reason).toBe('length');
    expect(usage?.completion_tokens).toBeGreaterThanOrEqual(256);
    expect(usage?.completion_tokens).toBeLessThan(400);
  });

  test('in a string of a schema: the string is closed, and the answer is whole', async () => {
    const completion = await openai.chat.completions.parse({ ...looping, response_format: strings('a', 'b') });
    const [choice] = completion.choices;
    expect(choice?.finish_reason).toBe('stop');
    expect(choice?.message.parsed).toEqual({ a: expect.stringMatching(/./), b: expect.stringMatching(/./) });
    expect(completion.usage?.completion_tokens).toBeLessThan(256);
  });

  test('in many strings: it ends as one that is too long, as valid JSON', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `s${i}`);
    const { choices } = await openai.chat.completions.create({ ...looping, response_format: strings(...names) });
    expect(choices[0]?.finish_reason).toBe('length');
    expect(Object.keys(JSON.parse(choices[0]?.message.content ?? ''))).toEqual(names);
  });
});

test('without max_completion_tokens an answer has as many tokens as the server sets', async () => {
  const { max_completion_tokens: _, ...unset } = looping;
  const { choices, usage } = await openai.chat.completions.create(unset);
  expect([choices[0]?.finish_reason, usage?.completion_tokens]).toEqual(['length', 200]);
});

test('the Responses API on the engine: an answer that obeys its schema, and its tokens', async () => {
  const { json_schema, type } = strings('city');
  const { output_text, usage, status } = await openai.responses.create({
    ...{ model: 'test/tiny', input: 'Tell me about the parcel.', temperature: 0, max_output_tokens: 100 },
    text: { format: { type, ...json_schema } },
  });
  expect(Object.keys(JSON.parse(output_text))).toEqual(['city']);
  expect(status).toBe(usage?.output_tokens === 100 ? 'incomplete' : 'completed');
});
