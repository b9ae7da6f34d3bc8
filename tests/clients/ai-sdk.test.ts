import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, Output, streamText } from 'ai';
import { afterEach, expect, test } from 'vitest';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { ChatStep, Script } from '../scripted-backend/script.ts';
import { serveScript } from './scripted.ts';

type Server = Awaited<ReturnType<typeof serveScript>>;
let server: Server | undefined;
afterEach(() => server?.close(0));

async function model(script: Script) {
  server = await serveScript(script);
  const provider = createOpenAICompatible({
    name: 'assay',
    baseURL: `${server.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return provider('assay/starter');
}

const start: ChatStep = { event: { type: 'start', model: 'assay/starter' } };
const says = (text: string): ChatStep => ({ event: { type: 'content', text } });
const thinks = (text: string): ChatStep => ({ event: { type: 'reasoning', text } });
const usage = { promptTokens: 5, completionTokens: 2 };
const finish: ChatStep = { event: { type: 'finish', reason: 'stop', usage, metrics: NO_METRICS } };

test('generateText: answer, reasoning, usage', async () => {
  const result = await generateText({
    model: await model({ chat: [start, thinks('Hm.'), says('Hello'), finish] }),
    prompt: 'Hi',
  });
  expect(result.text).toBe('Hello');
  expect(result.reasoningText).toBe('Hm.');
  expect(result.finishReason).toBe('stop');
  expect(result.usage.totalTokens).toBe(7);
});

test('streamText: reasoning, then text, then usage', async () => {
  const chat = [start, thinks('Hm.'), says('Hel'), { waitMs: 60 }, says('lo'), finish];
  const result = streamText({ model: await model({ chat }), prompt: 'Hi' });
  const pieces: string[] = [];
  for await (const piece of result.textStream) pieces.push(piece);
  expect(pieces).toEqual(['Hel', 'lo']);
  expect(await result.reasoningText).toBe('Hm.');
  expect(await result.finishReason).toBe('stop');
  expect((await result.usage).outputTokens).toBe(2);
});

test('streamText: an abort frees the backend', async () => {
  const leaving = new AbortController();
  const chat: ChatStep[] = [start, says('Hel'), { waitMs: 'forever' }];
  const result = streamText({ model: await model({ chat }), prompt: 'Hi', abortSignal: leaving.signal });
  for await (const _ of result.textStream) leaving.abort();
  await expect.poll(() => server?.recorded.at(-1)).toEqual({ call: 'aborted', of: 'chat' });
});

test('structured output: the schema reaches the backend', async () => {
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const;
  const chat = [start, says('{"city":"Rome"}'), finish];
  const output = Output.object({ schema: jsonSchema(schema) });
  const result = await generateText({ model: await model({ chat }), prompt: 'Where?', output });
  expect(result.output).toEqual({ city: 'Rome' });
  expect(server?.recorded[0]).toMatchObject({ request: { format: { type: 'json', shape: { schema } } } });
});

test('an error is the typed one of the SDK', async () => {
  const failing = await model({ chat: [{ fail: { code: 'model_not_loaded', message: 'Load it first.' } }] });
  const error = await generateText({ model: failing, prompt: 'Hi', maxRetries: 0 }).catch((thrown: unknown) => thrown);
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 409, message: 'Load it first.' });
});
