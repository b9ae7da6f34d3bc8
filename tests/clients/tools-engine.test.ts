import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { type Machine, startMachine } from '../engine-process/machine.ts';
import { withTools } from '../engine-process/with-tools.ts';

/*
 * Tool calls with clients of others, on the real engine with a tiny model of random weights: what it calls is chance,
 * that the calls obey their schemas is not.
 */

const CITIES = ['Paris', 'Rome'];
const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const, enum: CITIES } },
  required: ['city'],
  additionalProperties: false,
};
const named = { name: 'get_weather', description: 'Weather now.', parameters };
const messages = [{ role: 'user' as const, content: 'How is the weather?' }];
const asked = { model: 'test/tiny', messages, tool_choice: 'required' as const, parallel_tool_calls: false, seed: 1 };
const tools = [{ type: 'function' as const, function: named }];

let machine: Machine;
let server: RunningServer;
let openai: OpenAI;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3', { edit: withTools });
  const app = createApp({ backend: machine.backend, apis: ['models'] });
  server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'placeholder', maxRetries: 0 });
});
afterAll(async () => {
  await server?.close(0);
  await machine?.close();
});

const verdict = {
  type: 'object' as const,
  properties: { warm: { type: 'boolean' as const } },
  required: ['warm'],
  additionalProperties: false,
};

describe('tools beside a format', () => {
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'verdict', schema: verdict } };

  test.each([1, 2, 3, 4, 5, 6])('auto, seed %i: calls, or an answer in the format', async (seed) => {
    const sent = { ...asked, tool_choice: 'auto' as const, tools, response_format, temperature: 2, seed };
    const { choices } = await openai.chat.completions.create(sent);
    const [{ message, finish_reason } = choices[0]!] = choices;
    if (finish_reason === 'tool_calls') expect(message.content).toBeNull();
    else expect(JSON.parse(message.content ?? '')).toEqual({ warm: expect.any(Boolean) });
    const stream = openai.chat.completions.stream(sent);
    expect((await stream.finalChatCompletion()).choices[0]?.message.content ?? null).toBe(message.content);
  });

  test('required: the format has no effect', async () => {
    const { choices } = await openai.chat.completions.create({ ...asked, tools, response_format });
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
  });
});

describe('the client of OpenAI', () => {
  test('a blocking answer', async () => {
    const { choices } = await openai.chat.completions.create({ ...asked, tools });
    const [choice] = choices;
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
    const call = choice?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } });
    expect(CITIES).toContain(JSON.parse(call?.type === 'function' ? call.function.arguments : '').city);
  });

  test('its streaming helper gathers the same calls', async () => {
    const seen: string[] = [];
    const stream = openai.chat.completions
      .stream({ ...asked, tools })
      .on('tool_calls.function.arguments.delta', ({ arguments_delta }) => seen.push(arguments_delta));
    const streamed = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls?.[0];
    const whole = await openai.chat.completions.create({ ...asked, tools });
    expect(streamed).toMatchObject({ function: { arguments: seen.join('') } });
    expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { arguments: seen.join('') } });
  });

  test('runTools: calls the function, sends its output back, and asks again', async () => {
    const cities: string[] = [];
    const runner = openai.chat.completions.runTools(
      {
        ...asked,
        tools: [
          {
            type: 'function',
            function: {
              ...named,
              parse: JSON.parse,
              function: ({ city }: { city: string }) => {
                cities.push(city);
                return `Sun in ${city}`;
              },
            },
          },
        ],
      },
      { maxChatCompletions: 2 },
    );
    await runner.done();
    expect(cities).toHaveLength(2);
    expect(CITIES).toEqual(expect.arrayContaining(cities));
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
  });
});

describe('the Responses API', () => {
  const functions = [{ type: 'function' as const, strict: true, ...named }];
  const sent = { model: 'test/tiny', tools: functions, tool_choice: 'required' as const, parallel_tool_calls: false };
  const input = [{ role: 'user' as const, content: 'How is the weather?' }];

  test('a call, its output, and another call', async () => {
    const first = await openai.responses.create({ ...sent, input });
    const [call] = first.output;
    expect(call).toMatchObject({ type: 'function_call', name: 'get_weather', status: 'completed' });
    if (call?.type !== 'function_call') throw new Error('no call');
    expect(CITIES).toContain(JSON.parse(call.arguments).city);
    const output = { type: 'function_call_output' as const, call_id: call.call_id, output: 'Sun' };
    const second = await openai.responses.create({ ...sent, input: [...input, call, output] });
    expect(second.output[0]).toMatchObject({ type: 'function_call' });
    expect(second.usage?.input_tokens).toBeGreaterThan(first.usage?.input_tokens ?? 0);
  });

  test('its streaming helper gathers the call', async () => {
    const stream = openai.responses.stream({ ...sent, input });
    const deltas: string[] = [];
    stream.on('response.function_call_arguments.delta', ({ delta }) => deltas.push(delta));
    const [call] = (await stream.finalResponse()).output;
    expect(call).toMatchObject({ type: 'function_call', arguments: deltas.join('') });
    expect(CITIES).toContain(JSON.parse(deltas.join('')).city);
  });
});

describe('the AI SDK', () => {
  const provider = () => createOpenAICompatible({ name: 'assay', baseURL: `${server.url}/v1`, includeUsage: true });
  const getWeather = () =>
    tool({
      description: 'Weather now.',
      inputSchema: jsonSchema<{ city: string }>(parameters),
      execute: async ({ city }) => `Sun in ${city}`,
    });

  test('generateText: two steps with calls and their outputs', async () => {
    const { steps } = await generateText({
      model: provider()('test/tiny'),
      tools: { getWeather: getWeather() },
      toolChoice: 'required',
      stopWhen: stepCountIs(2),
      prompt: 'How is the weather?',
      seed: 1,
      maxOutputTokens: 60,
      providerOptions: { assay: { parallel_tool_calls: false } },
    });
    expect(steps).toHaveLength(2);
    for (const { toolResults } of steps) expect(toolResults[0]?.output).toMatch(/^Sun in (Paris|Rome)$/);
  });

  test('streamText: the call as a whole', async () => {
    const result = streamText({
      model: provider()('test/tiny'),
      tools: { getWeather: getWeather() },
      toolChoice: 'required',
      prompt: 'How is the weather?',
      seed: 1,
      maxOutputTokens: 60,
    });
    const [call] = await result.toolCalls;
    expect(call).toMatchObject({ toolName: 'getWeather' });
    expect(CITIES.map((city) => ({ city }))).toContainEqual(call?.input);
  });
});
