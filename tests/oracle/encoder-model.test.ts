import { afterAll, describe, expect, it } from 'vitest';
import { at } from '../../lib/at.ts';
import type { DecideTask, ExtractTask, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import type { AnswerShape } from '../../lib/contract/answer-shape.ts';
import { readEncoderManifest } from '../../runtime/compile/manifest.ts';
import type { Work } from '../../runtime/protocol/messages.ts';
import type { PreparedWork, ServedModel } from '../../runtime/worker/serve.ts';
import { goldenOf, loadFixture } from './encoder-fixtures.ts';

const closing: (() => void)[] = [];
afterAll(() => {
  for (const close of closing) close();
});

async function load(...args: Parameters<typeof loadFixture>): Promise<Awaited<ReturnType<typeof loadFixture>>> {
  const model = await loadFixture(...args);
  closing.push(model.close);
  return model;
}

const SHARED = { media: [], temperature: 0, maxOutputTokens: 100 } as const;
const batch = (context: string, ...tasks: TaskBatch['tasks']): TaskBatch => ({
  ...SHARED,
  input: { context },
  tasks,
  probabilities: { calibrated: true },
});
const choice = (options: string[], question = 'Which team?'): DecideTask => ({
  type: 'decide',
  kind: 'choice',
  name: 'a',
  question,
  options,
});
const extract = (shape: AnswerShape): ExtractTask => ({ type: 'extract', name: 'e', instruction: 'entities', shape });

function prepare(model: ServedModel, work: Work): PreparedWork {
  const parts = model.prepare(work, {});
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
  }
}

async function ask(model: ServedModel, asked: TaskBatch, signal = new AbortController().signal, timeoutMs = 60_000) {
  const types: string[] = [];
  let answers: readonly TaskAnswer[] = [];
  const reply = (message: { type: string; answers?: readonly TaskAnswer[] }) => {
    types.push(message.type);
    answers = message.answers ?? answers;
  };
  await prepare(model, { kind: 'tasks', batch: asked }).run({ reply, signal }, timeoutMs, []);
  return { types, answers };
}

describe('a marker model', async () => {
  const model = await load('laya');
  const refused = (work: Work) => () => prepare(model, work);
  const tasks = (asked: TaskBatch): Work => ({ kind: 'tasks', batch: asked });
  const image = {
    type: 'image',
    source: { type: 'base64', data: '', mimeType: 'image/png' },
    param: 'images[0]',
  } as const;

  it('replies queued, answers and finished', async () => {
    const { types, answers } = await ask(model, batch('Hello.', choice(['it', 'hr'])));
    expect(types).toEqual(['queued', 'answers', 'finished']);
    const { optionLogprobs = [] } = at(answers, 0);
    expect(optionLogprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 9);
  });

  it('says what it can do', () => {
    expect(model.info).toMatchObject({
      contract: { name: 'laya', temperature: expect.stringContaining('rl_agent_config.json') },
      capabilities: { decide: 'options', extract: false, chat: false, max_tokens: 160 },
    });
  });

  it('averages the orders of a choice', async () => {
    const asked = batch('Hello.', choice(['it', 'hr', 'law']));
    const [one] = (await ask(model, asked)).answers;
    const [both] = (await ask(model, { ...asked, probabilities: { calibrated: true, orders: 2 } })).answers;
    expect(both!.optionLogprobs).not.toEqual(one!.optionLogprobs);
    expect(both!.optionLogprobs!.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 9);
  });

  it('uses no temperature if the request asks for none', async () => {
    const asked = batch('Hello.', choice(['it', 'hr']));
    const [mine] = (await ask(model, { ...asked, probabilities: { calibrated: false } })).answers;
    const [authors] = (await ask(model, asked)).answers;
    const distance = (answer: TaskAnswer) => answer.optionLogprobs![0]! - answer.optionLogprobs![1]!;
    // The fixture's temperature of a choice of two.
    expect(distance(mine!) / distance(authors!)).toBeCloseTo(1.3071, 3);
  });

  it.each<[string, Work, string]>([
    ['a chat', { kind: 'chat', request: { messages: [] } as never }, 'unsupported_parameter'],
    ['an image', tasks({ ...batch('x', choice(['a', 'b'])), media: [image] }), 'unsupported_modality'],
    ['a free answer', tasks(batch('x', { type: 'decide', name: 'a', question: 'Why?' })), 'unsupported_parameter'],
    ['an extraction', tasks(batch('x', extract({ kind: 'keys', keys: ['a'] }))), 'unsupported_parameter'],
    ['a long text', tasks(batch('word '.repeat(400), choice(['a', 'b']))), 'input_too_long'],
    ['a very long text', tasks(batch('word '.repeat(100_000), choice(['a', 'b']))), 'input_too_long'],
    ['a long option', tasks(batch('x', choice(['word '.repeat(40), 'b']))), 'input_too_long'],
    [
      'options that become the same',
      tasks(
        batch('x', choice(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((c) => `one two three four five six ${c}`))),
      ),
      'input_too_long',
    ],
  ])('refuses %s', (_, work, code) => expect(refused(work)).toThrow(expect.objectContaining({ code })));

  it('ends a request whose caller has left, or whose time is up', async () => {
    const asked = batch('Hello.', choice(['it', 'hr']));
    await expect(ask(model, asked, AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
    await expect(ask(model, asked, undefined, 0)).rejects.toMatchObject({ code: 'timeout' });
  });

  it('reads a long text in windows, by the most certain one', async () => {
    const windowed = await load('laya', { windows: true });
    const text = `${'The weather is fine today. '.repeat(40)}I want my money back.`;
    const statement: DecideTask = { ...choice(['yes', 'no'], 'The customer wants a refund.'), kind: 'predicate' };
    const [long] = (await ask(windowed, batch(text, statement))).answers;
    const [short] = (await ask(windowed, batch('The weather is fine today. '.repeat(2), statement))).answers;
    expect(Math.exp(long!.optionLogprobs![0]!)).toBeGreaterThan(0);
    expect(long!.optionLogprobs![0]!).toBeGreaterThanOrEqual(short!.optionLogprobs![0]! - 1);
  });

  it.each(['int8', 'int8-blocks', 'auto'] as const)(
    'runs as %s, and records how far its answers are off',
    async (precision) => {
      const made = await load('laya', { precision }).catch((error: Error) => error);
      // A form of random weights may be too far off; then the error says by how much.
      if (made instanceof Error) return expect(made.message).toMatch(/cannot be used as int8.*logits off by/);
      const manifest = readEncoderManifest(made.dir)!;
      expect(precision === 'auto' ? ['int8', 'int8-blocks', 'float'] : [precision]).toContain(manifest.precision);
      const found = manifest.choice.measured.find((one) => one.precision === manifest.precision)!;
      expect(found.error).toBeLessThan(0.75);
      expect((await ask(made, batch('Hello.', choice(['it', 'hr'])))).answers).toHaveLength(1);
    },
  );
});

describe('GLiNER2', async () => {
  const model = await load('gliner2');
  const found = async (text: string, shape: AnswerShape) =>
    at((await ask(model, batch(text, extract(shape)))).answers, 0);

  it('finds the spans of the library, with their places', async () => {
    let spans = 0;
    for (const { name, text, schema, expected } of goldenOf('gliner2').cases) {
      if (!name.startsWith('entities-') || !Array.isArray(schema.entities)) continue;
      const texts = schema.entities.map((label: string) => [label, { type: 'string' }]);
      const keys = await found(text, { kind: 'keys', keys: schema.entities });
      const required = await found(text, {
        kind: 'schema',
        schema: { type: 'object', properties: Object.fromEntries(texts), required: schema.entities },
      });
      for (const label of schema.entities) {
        // The library reports spans above the threshold of the case; a required text is the best one in any case.
        const [best] = expected.result.entities[label];
        if (!best) continue;
        spans++;
        const { evidence, probability } = required.fields!.find(({ path }) => path === `/${label}`)!;
        expect(JSON.parse(required.json)[label], name).toBe(best.text);
        expect(evidence).toEqual({ start: best.start_utf16, end: best.end_utf16 });
        expect(probability).toBeCloseTo(best.confidence, 4);
        expect(JSON.parse(keys.json)[label]).toBe(best.confidence >= 0.5 ? best.text : null);
      }
    }
    expect(spans).toBeGreaterThan(0);
  });

  it('reads a long text in windows of 384 words that share 64, and takes the best span of all', async () => {
    const windowed = await load('gliner2', { windows: true });
    // Words of one letter, so that window and place are known: the first window ends with a full stop.
    const words = Array.from({ length: 500 }, (_, i) => (i === 383 || i === 499 ? '.' : i === 420 ? 'Acme' : 'a'));
    const windows = [words.slice(0, 384), words.slice(320)].map((part) => part.join(' '));
    const properties = { buyer: { type: 'string' }, city: { type: 'string' } };
    const shape: AnswerShape = {
      kind: 'schema',
      schema: { type: 'object', properties, required: ['buyer', 'city'] },
    };
    const read = async (one: ServedModel, text: string) => {
      const [{ fields = [] } = { fields: [] }] = (await ask(one, batch(text, extract(shape)))).answers;
      return fields;
    };
    const [first = [], second = []] = [await read(model, windows[0]!), await read(model, windows[1]!)];
    const moved = second.map((field) => {
      const { start, end } = field.evidence!;
      return { ...field, evidence: { start: start + 640, end: end + 640 } };
    });
    const best = first.map((one, i) => (moved[i]!.probability > one.probability ? moved[i]! : one));
    const found = await read(windowed, words.join(' '));
    expect(found.map(({ path, evidence }) => ({ path, evidence }))).toEqual(
      best.map(({ path, evidence }) => ({ path, evidence })),
    );
    for (const [i, { probability }] of found.entries()) expect(probability).toBeCloseTo(best[i]!.probability, 5);
    const tooLong = (one: ServedModel, text: string, message: unknown) =>
      expect(() => prepare(one, { kind: 'tasks', batch: batch(text, extract(shape)) })).toThrow(
        expect.objectContaining({ code: 'input_too_long', message }),
      );
    const advice = /start the server with --long-input windows/;
    tooLong(model, words.join(' ').repeat(3), expect.stringMatching(advice));
    // Words of many tokens: even a window is too long.
    tooLong(windowed, 'Xqzvwkjy '.repeat(500), expect.not.stringMatching(advice));
  });

  it('answers schemas of texts, lists, choices, booleans and lists of objects', async () => {
    const text = 'Maria Keller from Oslo ordered tea and two blue mugs for 12 EUR.';
    const schema = {
      type: 'object',
      properties: {
        buyer: { type: 'string', description: 'a human being' },
        items: { type: 'array', items: { type: 'string' } },
        currency: { enum: ['EUR', 'USD'] },
        topics: { type: 'array', items: { enum: ['food', 'travel'] } },
        paid: { type: 'boolean' },
        note: { type: ['string', 'null'] },
        lines: {
          type: 'array',
          items: {
            type: 'object',
            properties: { item: { type: 'string' }, unit: { enum: ['pcs', 'kg'] } },
            required: ['item', 'unit'],
          },
        },
      },
      required: ['buyer', 'items', 'currency', 'topics', 'paid', 'note', 'lines'],
    };
    const { json, fields = [] } = await found(text, { kind: 'schema', schema });
    const data = JSON.parse(json);
    expect(Object.keys(data)).toEqual(Object.keys(schema.properties));
    expect(text).toContain(data.buyer);
    for (const item of data.items) expect(text).toContain(item);
    expect(['EUR', 'USD']).toContain(data.currency);
    expect(typeof data.paid).toBe('boolean');
    for (const line of data.lines) {
      expect(text).toContain(line.item);
      expect(['pcs', 'kg']).toContain(line.unit);
    }
    for (const { evidence, path } of fields) {
      if (!evidence) continue;
      const value = path
        .slice(1)
        .split('/')
        .reduce((inner, step) => inner[step], data);
      expect(text.slice(evidence.start, evidence.end)).toBe(value);
    }
  });

  it.each<[string, AnswerShape, string, RegExp]>([
    [
      'a number',
      { kind: 'schema', schema: { type: 'object', properties: { total: { type: 'number' } } } },
      'unsupported_schema',
      /total/,
    ],
    [
      'a pattern',
      { kind: 'schema', schema: { type: 'object', properties: { id: { type: 'string', pattern: 'A' } } } },
      'unsupported_schema',
      /pattern of id/,
    ],
    [
      'a nested object',
      { kind: 'schema', schema: { type: 'object', properties: { a: { type: 'object', properties: {} } } } },
      'unsupported_schema',
      /extract a:/,
    ],
    ['no fields', { kind: 'open' }, 'unsupported_parameter', /keys or a schema/],
  ])('refuses %s', (_, shape, code, message) => {
    const work: Work = { kind: 'tasks', batch: batch('x', extract(shape)) };
    expect(() => prepare(model, work)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });
});

it('Verdict abstains where its last label wins', async () => {
  const model = await load('verdict');
  const cases = goldenOf('verdict').cases.filter(
    ({ expected }) => !Object.values(expected).some((one) => (one as { refused?: string }).refused),
  );
  let abstained = 0;
  for (const { state, questions, expected } of cases) {
    for (const [id, { type, instructions, criteria }] of Object.entries(questions) as [
      string,
      { type: string; instructions: string; criteria: object },
    ][]) {
      if (typeof state !== 'string' || type !== 'choice') continue;
      const task: DecideTask = {
        ...choice(Object.keys(criteria), instructions),
        descriptions: Object.values(criteria).map((one) => one || null),
      };
      const [answer] = (await ask(model, batch(state, task))).answers;
      expect(answer!.abstained ?? false, id).toBe(expected[id].abstained);
      expect(JSON.parse(answer!.json).abstained ?? false).toBe(expected[id].abstained);
      if (answer!.abstained) abstained++;
    }
  }
  expect(abstained).toBeGreaterThan(0);
});
