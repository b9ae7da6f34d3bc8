import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { type Machine, MODEL, startMachine } from '../engine-process/machine.ts';

/*
 * The official client against a server with a real engine and a tiny model: its answers are noise, their form is not.
 */

let machine: Machine;
let server: RunningServer;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3');
  const keys = listedKeys([{ name: 'client', sha256: await hashSecret('secret'), models: ['*'], scopes: [] }]);
  server = await startServer(createApp({ backend: machine.backend, keys }).fetch, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await server?.close(0);
  await machine?.close();
});

const input = 'Order A-1042 came late. Ana Ruiz wants 49.90 euro back.';
const client = (apiKey = 'secret') => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
const sum = (list: readonly { probability: number }[]) =>
  list.reduce((total, { probability }) => total + probability, 0);

describe('client.decisions.create', () => {
  test('answers all question types, in order and typed', async () => {
    const { model, answers, usage } = await client().decisions.create({
      model: MODEL,
      input,
      questions: [
        { type: 'predicate', name: 'refund', instructions: 'Does the customer want money back?' },
        {
          type: 'choice',
          instructions: [{ type: 'input_text', text: 'Which team?' }],
          choices: [{ value: 'billing', description: 'Payments' }, { value: true }, { value: 'true' }],
        },
        {
          type: 'score',
          name: 'anger',
          instructions: 'How angry?',
          levels: [{ label: 'calm' }, { label: 'cross' }, { label: 'angry', description: 'Shouts.' }],
        },
      ],
      safety_identifier: 'user-1',
      prompt_cache_key: 'key-1',
    });
    expect(model).toBe(MODEL);
    const [refund, team, anger] = answers;
    if (refund?.type !== 'predicate' || team?.type !== 'choice' || anger?.type !== 'score') throw new Error('mixed up');
    expect([refund.name, team.name, anger.name]).toEqual(['refund', null, 'anger']);
    expect(refund.probability).toBeGreaterThan(0);
    expect(refund.probability).toBeLessThan(1);
    expect(team.probabilities.map(({ value }) => value)).toEqual(['billing', true, 'true']);
    expect(Math.abs(sum(team.probabilities) - 1)).toBeLessThan(1e-6);
    const likeliest = team.probabilities.reduce((best, one) => (one.probability > best.probability ? one : best));
    expect(team.choice).toBe(likeliest.value);
    expect(Math.abs(sum(anger.probabilities) - 1)).toBeLessThan(1e-6);
    expect(anger.score).toBeCloseTo(
      anger.probabilities.reduce((total, { value, probability }) => total + value * probability, 0),
      9,
    );
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
  });

  test('takes messages, JSON and calls of tools', async () => {
    const { answers } = await client().decisions.create({
      model: MODEL,
      input: [
        { role: 'developer', content: 'Be strict.' },
        { role: 'user', content: [{ type: 'input_json', data: { order: 'A-1042' } }] },
        { type: 'function_call', call_id: 'c', name: 'lookup', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'late' },
      ],
      questions: [{ type: 'predicate', instructions: 'Is it late?' }],
    });
    expect(answers).toEqual([
      { type: 'predicate', name: null, probability: expect.any(Number), x_label_mass: expect.any(Number) },
    ]);
  });

  test('gives the same probabilities to the same request, and others in several orders', async () => {
    const ask = (more: object) =>
      client().decisions.create({
        model: MODEL,
        input,
        questions: [{ type: 'choice', instructions: 'Who?', choices: ['Ana', 'Bo', 'Cy'].map((value) => ({ value })) }],
        ...more,
      });
    const once = await ask({ orders: 1 });
    expect((await ask({ orders: 1 })).answers).toEqual(once.answers);
    const thrice = await ask({ orders: 3 });
    expect(thrice.answers).not.toEqual(once.answers);
    expect(thrice.usage.input_tokens).toBeGreaterThan(once.usage.input_tokens);
  });

  test('abstains with a refusal, as the client types it', async () => {
    const { answers } = await client().decisions.create({
      model: MODEL,
      input,
      questions: [{ type: 'choice', name: 'who', instructions: 'Who?', choices: [{ value: 'Ana' }, { value: 'Bo' }] }],
      ...{ abstain_below: 1 },
    });
    expect(answers).toMatchObject([{ type: 'refusal', name: 'who' }]);
  });

  test('extracts, which no other server of this format does', async () => {
    const decision = await client().decisions.create({
      model: MODEL,
      input,
      // An extension of ours, so the client's types do not know it.
      questions: [{ type: 'extract', instructions: 'The order.', keys: ['order', 'name'] } as never],
    });
    const [answer] = decision.answers as unknown as [
      { data: object; fields: { value: unknown; evidence: Quote | null }[] },
    ];
    expect(Object.keys(answer.data)).toEqual(['order', 'name']);
    for (const { value, evidence } of answer.fields) {
      if (evidence) expect(input.slice(evidence.start, evidence.end)).toBe(value);
    }
  });
});

interface Quote {
  start: number;
  end: number;
}

describe("the client's errors", () => {
  const questions = [{ type: 'predicate' as const, instructions: '?' }];
  test.each<[string, new (...args: never[]) => Error, () => Promise<unknown>, object]>([
    [
      'a bad value',
      OpenAI.BadRequestError,
      () => client().decisions.create({ model: MODEL, input, questions: [] }),
      { status: 400, code: 'invalid_value', param: 'questions', type: 'invalid_request_error' },
    ],
    [
      'an unknown model',
      OpenAI.NotFoundError,
      () => client().decisions.create({ model: 'org/none', input, questions }),
      { status: 404, code: 'model_not_found', param: 'model' },
    ],
    [
      'an unknown key',
      OpenAI.AuthenticationError,
      () => client('other').decisions.create({ model: MODEL, input, questions }),
      { status: 401, code: 'invalid_api_key', param: null },
    ],
  ])('%s', async (_, kind, ask, fields) => {
    const error = await ask().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject(fields);
  });
});
