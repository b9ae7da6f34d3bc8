import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import { NO_METRICS } from '../scripted-backend/backend.ts';
import type { ChatStep, Script } from '../scripted-backend/script.ts';
import { serveScript } from './scripted.ts';

/* OpenAI's own client on `POST /v1/responses`; only its base address is changed. */

type Server = Awaited<ReturnType<typeof serveScript>>;
let server: Server | undefined;
afterEach(() => server?.close(0));

async function client(script: Script): Promise<OpenAI> {
  server = await serveScript(script);
  return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'placeholder', maxRetries: 0 });
}

const model = 'assay/starter';
const start: ChatStep = { event: { type: 'start', model } };
const says = (text: string): ChatStep => ({ event: { type: 'content', text } });
const thinks = (text: string): ChatStep => ({ event: { type: 'reasoning', text } });
const usage = { promptTokens: 5, completionTokens: 2 };
const finish: ChatStep = { event: { type: 'finish', reason: 'stop', usage, metrics: NO_METRICS } };
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const format = { type: 'json_schema', name: 'place', strict: true, schema } as const;

test('create: the text, reasoning, usage', async () => {
  const openai = await client({ chat: [start, thinks('Hm.'), says('Hello'), finish] });
  const response = await openai.responses.create({ model, input: 'Hi', instructions: 'Be brief.' });
  expect(response.output_text).toBe('Hello');
  expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
  expect(response).toMatchObject({ status: 'completed', usage: { input_tokens: 5, total_tokens: 7 }, store: false });
  expect(server?.recorded[0]).toMatchObject({ request: { messages: [{ role: 'system' }, { role: 'user' }] } });
});

test('the output of one response is the input of the next', async () => {
  const openai = await client({ chat: [start, thinks('Hm.'), says('Hello'), finish] });
  const first = await openai.responses.create({ model, input: 'Hi' });
  const input = [{ role: 'user' as const, content: 'Hi' }, ...first.output, { role: 'user' as const, content: 'And?' }];
  await openai.responses.create({ model, input: input as OpenAI.Responses.ResponseInput });
  expect(server?.recorded.filter(({ call }) => call === 'chat').at(-1)).toMatchObject({
    request: {
      messages: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'assistant', parts: [{ text: 'Hello' }] },
        { role: 'user', parts: [{ text: 'And?' }] },
      ],
    },
  });
});

test('parse: the schema reaches the backend, the client parses the answer', async () => {
  const openai = await client({ chat: [start, says('{"city":"Rome"}'), finish] });
  const response = await openai.responses.parse({ model, input: 'Where?', text: { format } });
  expect(response.output_parsed).toEqual({ city: 'Rome' });
  expect(server?.recorded[0]).toMatchObject({ request: { format: { type: 'json', shape: { schema } } } });
});

describe('a stream', () => {
  test('as events, across pauses', async () => {
    const openai = await client({ chat: [start, says('Hel'), { waitMs: 100 }, says('lo'), finish] });
    const texts: string[] = [];
    let last: OpenAI.Responses.ResponseStreamEvent | undefined;
    for await (const event of await openai.responses.create({ model, input: 'Hi', stream: true })) {
      if (event.type === 'response.output_text.delta') texts.push(event.delta);
      last = event;
    }
    expect(texts).toEqual(['Hel', 'lo']);
    expect(last?.type).toBe('response.completed');
  });

  test('gathered by the helper of the client, with reasoning', async () => {
    const openai = await client({ chat: [start, thinks('Hm.'), says('Hel'), says('lo'), finish] });
    const whole = await openai.responses.stream({ model, input: 'Hi' }).finalResponse();
    expect(whole.output_text).toBe('Hello');
    expect(whole.output[0]).toMatchObject({ type: 'reasoning', content: [{ text: 'Hm.' }] });
  });

  test('parsed by the helper of the client', async () => {
    const openai = await client({ chat: [start, says('{"city":'), says('"Rome"}'), finish] });
    const whole = await openai.responses.stream({ model, input: 'Where?', text: { format } }).finalResponse();
    expect(whole.output_parsed).toEqual({ city: 'Rome' });
  });

  test('an error after the start is thrown by the client', async () => {
    const openai = await client({
      chat: [start, says('Hel'), { fail: { code: 'engine_failed', message: 'It broke.' } }],
    });
    const read = async () => {
      for await (const _ of await openai.responses.create({ model, input: 'Hi', stream: true }));
    };
    await expect(read()).rejects.toThrow(/It broke\./);
  });

  test('an abort frees the backend', async () => {
    const openai = await client({ chat: [start, says('Hel'), { waitMs: 'forever' }] });
    const stream = await openai.responses.create({ model, input: 'Hi', stream: true });
    for await (const event of stream) if (event.type === 'response.output_text.delta') stream.controller.abort();
    await expect.poll(() => server?.recorded.at(-1)).toEqual({ call: 'aborted', of: 'chat' });
  });
});

test.each([
  [{ store: true }, 'store'],
  [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
])('what needs a store is refused: %o', async (sent, param) => {
  const openai = await client({});
  const error = await openai.responses.create({ model, input: 'Hi', ...sent }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error).toMatchObject({ code: 'unsupported_parameter', param });
  expect(String(error)).toContain('nothing is stored here');
});
