import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { ChatStep, Script } from '../scripted-backend/script.ts';
import { serveScript } from './scripted.ts';

type Server = Awaited<ReturnType<typeof serveScript>>;
let server: Server | undefined;
afterEach(() => server?.close(0));

/** The official client; only its base address is changed. */
async function client(script: Script, options: { maxRetries?: number } = {}): Promise<OpenAI> {
  server = await serveScript(script);
  return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'placeholder', maxRetries: 0, ...options });
}

const model = 'assay/starter';
const messages = [{ role: 'user' as const, content: 'Hi' }];
const start: ChatStep = { event: { type: 'start', model } };
const says = (text: string): ChatStep => ({ event: { type: 'content', text } });
const usage = { promptTokens: 5, completionTokens: 2 };
const finish: ChatStep = { event: { type: 'finish', reason: 'stop', usage, metrics: { ...NO_METRICS, total_ms: 7 } } };

test('lists models', async () => {
  const openai = await client({
    models: [
      { id: model, status: 'active' },
      { id: 'org/other', status: 'compiled' },
    ],
  });
  const ids: string[] = [];
  for await (const one of openai.models.list()) ids.push(one.id);
  expect(ids).toEqual([model, 'org/other']);
});

test('retrieves one model', async () => {
  const openai = await client({ models: [{ id: 'org/other', status: 'compiled', created: 1_763_000_000 }] });
  expect(await openai.models.retrieve('org/other')).toMatchObject({
    id: 'org/other',
    object: 'model',
    created: 1_763_000_000,
    owned_by: 'org',
  });
  const error = await openai.models.retrieve('gpt-4o').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.NotFoundError);
  expect(error).toMatchObject({ code: 'model_not_found', param: 'model' });
});

test('deletes a model by its id', async () => {
  const openai = await client({});
  await openai.models.delete('org/other');
  expect(server?.recorded).toEqual([{ call: 'remove', model: 'org/other', compiledOnly: false }]);
});

test('a blocking chat, with reasoning and metrics', async () => {
  const openai = await client({ chat: [start, { event: { type: 'reasoning', text: 'Hm.' } }, says('Hello'), finish] });
  const completion = await openai.chat.completions.create({
    model,
    messages,
    max_completion_tokens: 50,
    temperature: 0,
  });
  expect(completion.choices[0]?.message.content).toBe('Hello');
  expect(completion.choices[0]?.message).toHaveProperty('reasoning_content', 'Hm.');
  expect(completion.usage?.total_tokens).toBe(7);
  expect(completion).toHaveProperty('metrics.total_ms', 7);
  expect(completion._request_id).toMatch(/^[\w-]{36}$/);
});

describe('a stream', () => {
  test('in deltas, across pauses', async () => {
    const openai = await client({ chat: [start, says('Hel'), { waitMs: 100 }, says('lo'), finish] });
    const stream_options = { include_usage: true };
    const stream = await openai.chat.completions.create({ model, messages, stream: true, stream_options });
    const pieces: (string | null | undefined)[] = [];
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) {
      pieces.push(chunk.choices[0]?.delta.content);
      chunks.push(chunk);
    }
    expect(pieces).toEqual([undefined, 'Hel', 'lo', undefined, undefined]);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 2 } });
  });

  test('gathered by the helper of the client', async () => {
    const openai = await client({ chat: [start, says('Hel'), says('lo'), finish] });
    const whole = await openai.chat.completions.stream({ model, messages }).finalChatCompletion();
    expect(whole.choices[0]?.message.content).toBe('Hello');
    expect(whole.choices[0]?.finish_reason).toBe('stop');
  });

  test('an error after the start is thrown by the client', async () => {
    const openai = await client({
      chat: [start, says('Hel'), { fail: { code: 'engine_failed', message: 'It broke.' } }],
    });
    const stream = await openai.chat.completions.create({ model, messages, stream: true });
    const read = async () => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toThrow(/It broke\./);
  });

  test('an abort frees the backend', async () => {
    const openai = await client({ chat: [start, says('Hel'), { waitMs: 'forever' }] });
    const stream = await openai.chat.completions.create({ model, messages, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) stream.controller.abort();
    }
    await expect.poll(() => server?.recorded.at(-1)).toEqual({ call: 'aborted', of: 'chat' });
  });
});

test('a blocking call that is aborted frees the backend', async () => {
  const openai = await client({ chat: [start, { waitMs: 'forever' }] });
  const leaving = new AbortController();
  const answer = openai.chat.completions.create({ model, messages }, { signal: leaving.signal });
  await expect.poll(() => server?.recorded.length).toBe(2);
  leaving.abort();
  await expect(answer).rejects.toThrow(OpenAI.APIUserAbortError);
  await expect.poll(() => server?.recorded.at(-1)).toEqual({ call: 'aborted', of: 'chat' });
});

describe('errors are the typed ones of the client', () => {
  test.each([
    ['input_too_long', OpenAI.BadRequestError, 400],
    ['model_not_found', OpenAI.NotFoundError, 404],
    ['model_not_loaded', OpenAI.ConflictError, 409],
    ['overloaded', OpenAI.RateLimitError, 429],
    ['engine_failed', OpenAI.InternalServerError, 500],
  ] as const)('%s', async (code, type, status) => {
    const openai = await client({ chat: [{ fail: { code, param: 'model', message: 'Do this.' } }] });
    const error = await openai.chat.completions.create({ model, messages }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ status, code, param: 'model', requestID: expect.any(String) });
    expect(String(error)).toContain('Do this.');
  });

  test('a wrong parameter', async () => {
    const openai = await client({});
    const error = await openai.chat.completions.create({ model, messages, temperature: 3 }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ code: 'invalid_value', param: 'temperature', type: 'invalid_request_error' });
  });

  test('the client retries after a full queue, as Retry-After says', async () => {
    const openai = await client({ chat: [{ fail: { code: 'overloaded', retryAfterSeconds: 1 } }] }, { maxRetries: 1 });
    const begin = performance.now();
    await expect(openai.chat.completions.create({ model, messages })).rejects.toThrow(OpenAI.RateLimitError);
    expect(server?.recorded).toHaveLength(2);
    expect(performance.now() - begin).toBeGreaterThan(900);
  });
});

test('structured output: the schema reaches the backend, the answer is parsed by the client', async () => {
  const openai = await client({ chat: [start, says('{"city":"Rome"}'), finish] });
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  };
  const completion = await openai.chat.completions.parse({
    model,
    messages,
    response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } },
  });
  expect(completion.choices[0]?.message.parsed).toEqual({ city: 'Rome' });
  expect(server?.recorded[0]).toMatchObject({
    request: { format: { type: 'json', shape: { kind: 'schema', schema } } },
  });
});
