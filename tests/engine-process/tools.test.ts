import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatEvent, ChatRequest, ToolUse } from '../../lib/backend.ts';
import type { AssayError } from '../../lib/errors.ts';
import { type Machine, newCall, startMachine } from './machine.ts';
import { withSecondTemplate, withTools } from './with-tools.ts';

/* Tool calls on the real engine, with a tiny model of random weights and a template with Qwen's form of calls. */

const tools: ToolUse = {
  tools: [
    {
      name: 'get_weather',
      description: 'The weather in a city.',
      parameters: {
        type: 'object',
        properties: { city: { enum: ['Paris', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 3 } },
        required: ['city', 'days'],
        additionalProperties: false,
      },
    },
    { name: 'get_time', parameters: { type: 'object', properties: {}, additionalProperties: false } },
  ],
  choice: 'required',
  parallel: false,
};
const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Tell me about the parcel.' }] }],
  temperature: 1,
  maxTokens: 400,
  stop: [],
  presencePenalty: 0,
  frequencyPenalty: 0,
  format: { type: 'text' },
  ...more,
});

let machine: Machine;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3', { edit: withTools });
});
afterAll(() => machine.close());

async function chat(more: Partial<ChatRequest>, { backend } = machine) {
  const events: ChatEvent[] = [];
  for await (const event of backend.chat(request(more), newCall())) events.push(event);
  const calls: { name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.type !== 'tool_call') continue;
    if (event.name !== undefined) calls.push({ name: event.name, arguments: '' });
    calls[event.index]!.arguments += event.arguments;
  }
  return { events, calls };
}

const validators = new Map(tools.tools.map(({ name, parameters }) => [name, new Ajv().compile(parameters)]));
const obeys = ({ name, arguments: text }: { name: string; arguments: string }) =>
  validators.get(name)?.(JSON.parse(text)) ?? false;
const finishOf = (events: readonly ChatEvent[]) => events.findLast((event) => event.type === 'finish');
const seeds = Array.from({ length: 6 }, (_, seed) => seed);

describe('a chat with tools', () => {
  it.each(seeds)('required, seed %i: one call that obeys its schema, and nothing else', async (seed) => {
    const { calls, events } = await chat({ tools, seed });
    expect(calls).toHaveLength(1);
    expect(calls.filter(obeys)).toEqual(calls);
    expect(events.map(({ type }) => type).filter((type) => type !== 'tool_call')).toEqual(['start', 'finish']);
    expect(finishOf(events)?.reason).toBe('stop');
  });

  it('both tools are called over some seeds', async () => {
    const names = new Set<string>();
    for (const seed of seeds) for (const { name } of (await chat({ tools, seed })).calls) names.add(name);
    expect([...names].sort()).toEqual(['get_time', 'get_weather']);
  });

  it('a named tool is the one that is called', async () => {
    for (const seed of seeds) {
      const { calls } = await chat({ tools: { ...tools, choice: { name: 'get_weather' } }, seed });
      expect(calls.map(({ name }) => name)).toEqual(['get_weather']);
    }
  });

  it('parallel: calls follow each other, each whole', async () => {
    const counts: number[] = [];
    for (const seed of seeds) {
      const { calls, events } = await chat({ tools: { ...tools, parallel: true }, seed, maxTokens: 60 });
      const whole = finishOf(events)?.reason === 'stop' ? calls : calls.slice(0, -1);
      expect(whole.filter(obeys)).toEqual(whole);
      counts.push(calls.length);
    }
    expect(Math.max(...counts)).toBeGreaterThan(1);
  });

  it('a call that is cut stays cut, with length', async () => {
    const { calls, events } = await chat({ tools: { ...tools, choice: { name: 'get_weather' } }, maxTokens: 1 });
    expect(finishOf(events)?.reason).toBe('length');
    expect(() => JSON.parse(calls[0]?.arguments ?? '')).toThrow();
  });

  it('auto: free text, and the same with the same seed', async () => {
    const auto = { tools: { ...tools, choice: 'auto' as const }, seed: 1, maxTokens: 20 };
    const [one, other] = [await chat(auto), await chat(auto)];
    const text = (events: readonly ChatEvent[]) =>
      events.map((event) => (event.type === 'content' ? event.text : '')).join('');
    expect(text(one.events)).not.toBe('');
    expect(text(other.events)).toBe(text(one.events));
  });

  it('reads a conversation with calls and their outputs', async () => {
    const call = { id: 'mine', name: 'get_weather', arguments: '{"city":"Paris","days":1}' };
    const messages: ChatRequest['messages'] = [
      ...request().messages,
      { role: 'assistant', parts: [], toolCalls: [call] },
      { role: 'tool', parts: [{ type: 'text', text: 'Sun' }], toolCallId: 'mine' },
    ];
    const [short, long] = [await chat({ tools }), await chat({ tools, messages })];
    expect(finishOf(long.events)?.usage.promptTokens).toBeGreaterThan(finishOf(short.events)?.usage.promptTokens ?? 0);
  });
});

it('a model whose second template has tools calls them, and chats without them by its first', async () => {
  const second = await startMachine('optimum/qwen3', { edit: withSecondTemplate });
  for (const seed of seeds) {
    const { calls } = await chat({ tools, seed }, second);
    expect(calls.map(obeys)).toEqual([true]);
  }
  const promptTokens = async (more: Partial<ChatRequest>) =>
    finishOf((await chat({ maxTokens: 1, ...more }, second)).events)?.usage.promptTokens ?? 0;
  expect(await promptTokens({})).toBeLessThan(await promptTokens({ tools }));
  await second.close();
});

it('a model whose template has no tools refuses them, and calls in messages', async () => {
  const plain = await startMachine('optimum/qwen3');
  const refusal = async (more: Partial<ChatRequest>) => {
    try {
      for await (const _ of plain.backend.chat(request(more), newCall()));
      return null;
    } catch (error) {
      const { code, param, message } = error as AssayError;
      return { code, param, message };
    }
  };
  const code = 'unsupported_parameter';
  expect(await refusal({ tools })).toMatchObject({
    code,
    param: 'tools',
    message: expect.stringContaining('Load a model'),
  });
  const toolCalls = [{ id: 'a', name: 'f', arguments: '{}' }];
  const messages: ChatRequest['messages'] = [...request().messages, { role: 'assistant', parts: [], toolCalls }];
  expect(await refusal({ messages })).toMatchObject({ code, param: 'messages[1].tool_calls' });
  await plain.close();
});
