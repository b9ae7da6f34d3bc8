import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../lib/backend.ts';
import type { AssayError } from '../../lib/errors.ts';
import { type Machine, MODEL, newCall, startMachine } from './machine.ts';

const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Tell me about the parcel.' }] }],
  temperature: 0,
  maxTokens: 40,
  stop: [],
  presencePenalty: 0,
  frequencyPenalty: 0,
  format: { type: 'text' },
  ...more,
});

let machine: Machine;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3');
});
afterAll(() => machine.close());

async function chat(more: Partial<ChatRequest> = {}, signal?: AbortSignal) {
  const events: ChatEvent[] = [];
  for await (const event of machine.backend.chat(request(more), newCall(signal))) events.push(event);
  const finish = events.at(-1) as Extract<ChatEvent, { type: 'finish' }>;
  const contents = events.filter((event) => event.type === 'content');
  return {
    events,
    finish,
    content: contents.map(({ text }) => text).join(''),
    logprobs: contents.flatMap((event) => event.logprobs ?? []),
  };
}

describe('chat', () => {
  it('starts, says something, and finishes with usage and metrics', async () => {
    const { events, finish, content } = await chat();
    expect(events[0]).toEqual({ type: 'start', model: MODEL });
    expect(content).not.toBe('');
    expect(finish).toMatchObject({ type: 'finish', usage: { completionTokens: expect.any(Number) } });
    const { metrics, usage } = finish;
    expect(metrics).toMatchObject({
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      device: 'CPU',
    });
    expect(metrics.time_to_first_token_ms).toBeGreaterThan(0);
    expect(metrics.total_ms).toBeGreaterThanOrEqual(metrics.time_to_first_token_ms!);
    expect(metrics.tokens_per_second).toBeGreaterThan(0);
  });

  it('says the same again at temperature 0, now from the prefix cache', async () => {
    const [first, second] = [await chat(), await chat()];
    expect(second.content).toBe(first.content);
    expect(second.finish.metrics.cached_tokens).toBeGreaterThan(0);
    expect(Number(second.finish.metrics.cached_tokens) % 16).toBe(0);
  });

  it('says the same for the same seed', async () => {
    const warm = { temperature: 1.5, seed: 7 };
    const texts = [await chat(warm), await chat(warm), await chat({ ...warm, seed: 8 })].map(({ content }) => content);
    expect(texts[1]).toBe(texts[0]);
    expect(texts[2]).not.toBe(texts[0]);
  });

  it('ends at maxTokens with length', async () => {
    const { finish } = await chat({ maxTokens: 3 });
    expect(finish).toMatchObject({ reason: 'length', usage: { completionTokens: 3 } });
  });

  it('ends before a stop string', async () => {
    const { content } = await chat();
    const stop = content.slice(4, 7);
    const stopped = await chat({ stop: [stop] });
    expect(stopped.content).toBe(content.slice(0, content.indexOf(stop)));
    expect(stopped.finish.reason).toBe('stop');
    expect(stopped.finish.usage.completionTokens).toBeLessThan(40);
  });

  it('reports log-probabilities for every token of the answer', async () => {
    const { content, logprobs, finish } = await chat({ topLogprobs: 3 });
    expect(logprobs).toHaveLength(finish.usage.completionTokens);
    for (const { logprob, top, bytes, token } of logprobs) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top).toHaveLength(3);
      expect(top[0]!.logprob).toBeCloseTo(logprob, 4);
      expect(new TextDecoder().decode(Uint8Array.from(bytes))).toBe(token);
    }
    expect(new TextDecoder().decode(Uint8Array.from(logprobs.flatMap(({ bytes }) => bytes)))).toContain(
      content.slice(0, 5),
    );
  });

  it.each([
    ['json_object', { kind: 'any' as const }],
    [
      'a schema',
      {
        kind: 'schema' as const,
        schema: {
          type: 'object',
          properties: { a: { enum: ['x', 'y'] }, b: { type: 'boolean' } },
          required: ['a', 'b'],
          additionalProperties: false,
        },
      },
    ],
  ])('answers in JSON: %s', async (_, shape) => {
    const { content, finish } = await chat({
      format: { type: 'json', shape },
      maxTokens: 200,
      temperature: 1,
      seed: 3,
    });
    expect(finish.reason === 'length' || typeof JSON.parse(content)).toBeTruthy();
    if (shape.kind === 'schema') {
      expect(finish.reason).toBe('stop');
      expect(JSON.parse(content)).toEqual({ a: expect.stringMatching(/^[xy]$/u), b: expect.any(Boolean) });
    }
  });

  it('refuses a prompt that is too long', async () => {
    const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'word '.repeat(2000) }] }];
    await expect(chat({ messages })).rejects.toMatchObject({ code: 'input_too_long' });
  });

  it('is freed within a step when its caller leaves', async () => {
    const leave = new AbortController();
    const left = (async () => {
      for await (const event of machine.backend.chat(request({ maxTokens: 400 }), newCall(leave.signal))) {
        if (event.type === 'content') leave.abort();
      }
    })();
    await expect(left).rejects.toMatchObject({ code: 'internal_error' });
    await machine.engine.unload();
    await machine.load();
    expect((await chat()).content).not.toBe('');
  });
});

/** The hundred kills run against a scripted model in each test run; against a real one they take half a minute. */
const KILLS = Number(process.env.ASSAY_KILLS ?? 5);

it('a killed engine comes back with its model', { timeout: 60_000 + KILLS * 5_000 }, async () => {
  const { content } = await chat();
  for (let death = 0; death < KILLS; death++) {
    // Several at once: whenever the kill happens, some are unanswered.
    const inFlight = Array.from({ length: 8 }, () => chat({ maxTokens: 400 }).catch((error: AssayError) => error.code));
    await new Promise((resolve) => setTimeout(resolve, death));
    process.kill(machine.engine.status().pid!, 'SIGKILL');
    expect(new Set(await Promise.all(inFlight))).toContain('engine_failed');
    expect((await chat()).content).toBe(content);
  }
  expect(machine.engine.status().restarts).toBe(KILLS);
});
