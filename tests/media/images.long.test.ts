import fc from 'fast-check';
import sharp from 'sharp';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ChatEvent, ChatRequest, DecideTask, TaskBatch } from '../../lib/backend.ts';
import type { Part } from '../../lib/contract/conversation.ts';
import { type Machine, MODEL, newCall, startMachine } from '../engine-process/machine.ts';
import { type FixtureModel, goldenOf, MEDIA_TOKEN, mediaFile, partsOf } from './golden.ts';

let machine: Machine;

const image = (file: string, param = 'images[0]'): Part => ({
  type: 'image',
  source: { type: 'base64', ...mediaFile(file) },
  param,
});
const said = (text: string): Part => ({ type: 'text', text });

async function chat(parts: readonly Part[], maxTokens = 8) {
  const request: ChatRequest = {
    messages: [{ role: 'user', parts }],
    maxTokens,
    temperature: 0,
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
    topLogprobs: 0,
    format: { type: 'text' },
  };
  const events: ChatEvent[] = [];
  for await (const event of machine.backend.chat(request, newCall())) events.push(event);
  const finish = events.at(-1);
  if (finish?.type !== 'finish') throw new Error('the chat did not finish');
  const tokens = events.flatMap((event) => (event.type === 'content' ? (event.logprobs ?? []) : []));
  return { tokens, usage: finish.usage, cached: finish.metrics.cached_tokens };
}

type ChatAnswer = Awaited<ReturnType<typeof chat>>;

/** Compares two answers: the same tokens, with the same probabilities up to rounding. */
function expectSame(found: ChatAnswer, expected: ChatAnswer): void {
  expect(found.tokens.map(({ bytes }) => bytes)).toEqual(expected.tokens.map(({ bytes }) => bytes));
  const worst = found.tokens.map(({ logprob }, i) => Math.abs(logprob - expected.tokens[i]!.logprob));
  expect(Math.max(...worst)).toBeLessThan(1e-5);
}

const QUESTIONS = ['is a cat in it?', 'is a dog in it?', 'what is it?', 'is it a picture?', 'in what is the cat?'];
const tasks = QUESTIONS.map(
  (question, i): DecideTask => ({ type: 'decide', name: `q${i}`, question, options: ['yes', 'no', 'a cat'] }),
);

async function decide(batch: Partial<TaskBatch>) {
  const whole = { model: MODEL, input: { context: '' }, media: [], tasks, temperature: 0, maxOutputTokens: 16 };
  const probabilities = { orders: 1, calibrated: false };
  const { answers, usage, cachedTokens } = await machine.backend.runTasks(
    { ...whole, probabilities, ...batch },
    newCall(),
  );
  return { logprobs: answers.map(({ optionLogprobs }) => optionLogprobs!), usage, cachedTokens };
}

/** Images of answered requests that were encoded for them. */
const encoder = 'assay_image_features_total{source="encoder"}';

/** The case about `square.webp`. */
const SQUARE = 3;

const MODELS: readonly FixtureModel[] = [
  'smolvlm',
  'qwen2-vl',
  'qwen2.5-vl',
  'qwen3-vl',
  'gemma4',
  'genai-qwen2.5-vl',
  'genai-gemma4',
];

/** The models of a run before a landing: one for each way of placing images in a prompt. The variable asks for all. */
const FEW: readonly FixtureModel[] = ['smolvlm', 'qwen3-vl', 'genai-gemma4'];

describe.each(process.env.ASSAY_PROPERTY_RUNS ? MODELS : FEW)('%s', (name) => {
  const { cases } = goldenOf(name);
  beforeAll(async () => {
    machine = await startMachine(`../media/${name}`, { maxPromptLen: 1024 });
  });
  afterAll(() => machine.close());
  /** A new engine process: nothing is cached. */
  beforeEach(() => machine.load());

  describe('chats', () => {
    it('count the tokens that stand for images', async () => {
      for (const one of cases) {
        expect((await chat(partsOf(one))).usage.promptTokens).toBe(one.prompt.length);
      }
    });

    it('side by side answer as each alone', async () => {
      const alone: ChatAnswer[] = [];
      for (const one of cases) alone.push(await chat(partsOf(one)));
      await machine.load();
      const together = await Promise.all(cases.map((one) => chat(partsOf(one))));
      for (const [i, one] of together.entries()) expectSame(one, alone[i]!);
    });
  });

  describe('tasks', () => {
    it('about one image: packed as each alone, for one prefill and one run of the encoder', async () => {
      const before = await machine.metric(encoder);
      const media = [image('large.png'), image('tile-a.png', 'images[1]')] as TaskBatch['media'];
      const { logprobs, usage } = await decide({ media, input: { context: 'a cat and a dog' } });
      expect((await machine.metric(encoder)) - before).toBe(2);
      const different = new Set(logprobs.map((one) => one[0]!.toFixed(4)));
      expect(different.size).toBeGreaterThan(1);
      for (const [i, task] of tasks.slice(0, 2).entries()) {
        await machine.load();
        const alone = await decide({ media, input: { context: 'a cat and a dog' }, tasks: [task] });
        for (const [option, logprob] of alone.logprobs[0]!.entries()) {
          expect(Math.abs(logprob - logprobs[i]![option]!)).toBeLessThan(1e-5);
        }
        expect(alone.usage.promptTokens).toBeGreaterThan(usage.promptTokens / 2);
      }
    });

    it('in messages, with images between texts and in earlier messages', async () => {
      const messages = [
        { role: 'user' as const, parts: [said('a cat'), image('wide.png', 'messages[0].content[1]')] },
        { role: 'assistant' as const, parts: [said('what?')] },
        { role: 'user' as const, parts: [image('tall.jpg', 'messages[2].content[0]'), said('is it a cat?')] },
      ];
      const { logprobs } = await decide({ input: { messages } });
      const swapped = [{ ...messages[0]!, parts: messages[0]!.parts.toReversed() }, ...messages.slice(1)];
      const { logprobs: other } = await decide({ input: { messages: swapped } });
      expect(other[0]![0]).not.toBeCloseTo(logprobs[0]![0]!, 4);
    });

    it('about the same image again: no encoder and no prefix', async () => {
      const media = [image('square.webp')] as TaskBatch['media'];
      await decide({ media });
      const read = await machine.metric('assay_images_decoded_total');

      const encoded = await machine.metric(encoder);
      const again = await decide({ media, tasks: tasks.slice(0, 1) });
      expect(await machine.metric('assay_images_decoded_total')).toBe(read);
      expect(await machine.metric(encoder)).toBe(encoded);
      const { prompt } = cases[SQUARE]!;
      expect(again.cachedTokens).toBeGreaterThan(prompt.lastIndexOf(MEDIA_TOKEN[name]));
    });
  });

  it.runIf(name === 'smolvlm')('detail: low is one tile', async () => {
    const high = await chat([image('large.png')]);
    const low = await chat([{ ...image('large.png'), detail: 'low' } as Part]);
    expect(high.usage.promptTokens - low.usage.promptTokens).toBeGreaterThanOrEqual(4 * 16);
  });

  describe('images of the same size and different content', () => {
    const SIZE = { width: 64, height: 64 };
    const files: Part[] = [];
    beforeAll(async () => {
      for (let shade = 0; shade < 4; shade++) {
        const background = { r: 60 * shade, g: 255 - 60 * shade, b: 40 };
        const png = await sharp({ create: { ...SIZE, channels: 3, background } })
          .png()
          .toBuffer();
        const source = { type: 'base64' as const, data: png.toString('base64'), mimeType: 'image/png' };
        files.push({ type: 'image', source, param: 'images[0]' });
      }
    });

    it('never share KV, in any order of requests', { timeout: 180_000 }, async () => {
      const first = await Promise.all(files.map((file) => chat([file, said('a cat?')])));
      expect(new Set(first.map(({ tokens }) => tokens[0]!.logprob.toFixed(5))).size).toBe(files.length);
      // Tokens in front of the image may be cached.
      const before = cases[SQUARE]!.prompt.indexOf(MEDIA_TOKEN[name]);
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat({ max: files.length - 1 }), { minLength: 2, maxLength: 6 }), async (order) => {
          await machine.load();
          const seen = new Set<number>();
          let last = -1;
          for (const index of order) {
            const answer = await chat([files[index]!, said('a cat?')]);
            expectSame(answer, first[index]!);
            if (!seen.has(index)) expect(answer.cached).toBeLessThanOrEqual(before);
            if (index === last) expect(answer.cached).toBeGreaterThan(before);
            seen.add(index);
            last = index;
          }
        }),
        { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 2) },
      );
    });
  });
});
