import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DecideTask, ExtractTask, TaskBatch } from '../../lib/backend.ts';
import type { MediaPart, Part } from '../../lib/contract/conversation.ts';
import { type Machine, MODEL, newCall, startMachine } from '../engine-process/machine.ts';
import { goldenOf, mediaFile, partsOf } from './golden.ts';

const { cases } = goldenOf('voxtral');
let machine: Machine;
beforeAll(async () => {
  machine = await startMachine('../media/voxtral', { maxPromptLen: 1536 });
});
afterAll(() => machine.close());
/** A new engine process: nothing is cached. */
beforeEach(() => machine.load());

const recording = (file: string, param = 'audio[0]'): MediaPart => ({
  type: 'audio',
  source: { type: 'base64', ...mediaFile(file) },
  param,
});
const said = (text: string): Part => ({ type: 'text', text });

async function chat(parts: readonly Part[]) {
  const request = {
    messages: [{ role: 'user' as const, parts }],
    maxTokens: 8,
    temperature: 0,
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
    topLogprobs: 0,
    format: { type: 'text' as const },
  };
  let text = '';
  for await (const event of machine.backend.chat(request, newCall())) {
    if (event.type === 'content') text += event.text;
    if (event.type === 'finish') return { text, usage: event.usage };
  }
  throw new Error('the chat did not finish');
}

const tasks = ['is it a recording?', 'who speaks here?', 'is that said?'].map(
  (question, i): DecideTask => ({ type: 'decide', name: `q${i}`, question, options: ['yes', 'no'] }),
);

async function run(batch: Partial<TaskBatch>) {
  const whole = { model: MODEL, input: { context: '' }, media: [], tasks, temperature: 0, maxOutputTokens: 16 };
  const probabilities = { orders: 1, calibrated: false };
  const answered = await machine.backend.runTasks({ ...whole, probabilities, ...batch }, newCall());
  return { ...answered, logprobs: answered.answers.map(({ optionLogprobs }) => optionLogprobs) };
}

/** Recordings of answered requests that were encoded for them. */
const encoder = 'assay_audio_features_total{source="encoder"}';

describe('chats', () => {
  it('count the tokens that stand for audio', async () => {
    for (const one of cases) expect((await chat(partsOf(one))).usage.promptTokens).toBe(one.prompt.length);
  });

  it('side by side answer as each alone', async () => {
    const alone: string[] = [];
    for (const one of cases) alone.push((await chat(partsOf(one))).text);
    await machine.load();
    const together = await Promise.all(cases.map((one) => chat(partsOf(one))));
    expect(together.map(({ text }) => text)).toEqual(alone);
    expect(new Set(alone).size).toBeGreaterThan(1);
  });
});

describe('tasks', () => {
  it('about one recording: packed as each alone, for one run of the encoder', async () => {
    const before = await machine.metric(encoder);
    const media = [recording('long.flac')];
    const { logprobs, usage } = await run({ media, input: { context: 'who speaks' } });
    expect((await machine.metric(encoder)) - before).toBe(1);
    expect(usage.promptTokens).toBeGreaterThan(750);
    for (const [i, task] of tasks.entries()) {
      await machine.load();
      const alone = await run({ media, input: { context: 'who speaks' }, tasks: [task] });
      for (const [option, logprob] of alone.logprobs[0]!.entries()) {
        expect(Math.abs(logprob - logprobs[i]![option]!)).toBeLessThan(1e-5);
      }
    }
  });

  it('about the same recording again: nothing is decoded for the encoder, and no prefix is read', async () => {
    const media = [recording('short.wav')];
    await run({ media });
    const decoded = await machine.metric('assay_audio_decoded_total');
    const encoded = await machine.metric(encoder);
    const again = await run({ media, tasks: tasks.slice(0, 1) });
    expect(await machine.metric('assay_audio_decoded_total')).toBe(decoded);
    expect(await machine.metric(encoder)).toBe(encoded);
    expect(again.cachedTokens).toBeGreaterThan(375);
  });

  it('hear what is in the recording', async () => {
    const first = await run({ media: [recording('short.wav')] });
    const other = await run({ media: [recording('pair.mp3')] });
    expect(other.logprobs[0]![0]).not.toBeCloseTo(first.logprobs[0]![0]!, 4);
  });

  it('in messages, in every format, and extract', async () => {
    for (const file of ['short.wav', 'pair.mp3', 'pair.flac', 'pair.ogg', 'opus.ogg']) {
      const parts = [said('who?'), recording(file, 'messages[0].content[1]')];
      const extract: ExtractTask = {
        type: 'extract',
        name: 'facts',
        instruction: 'who speaks?',
        shape: { kind: 'keys', keys: ['who'] },
      };
      const { answers } = await run({ input: { messages: [{ role: 'user', parts }] }, tasks: [tasks[0]!, extract] });
      expect(answers.map(({ name }) => name)).toEqual(['q0', 'facts']);
    }
  });
});

describe('refused, with the path', () => {
  it('an image', async () => {
    const image: MediaPart = {
      type: 'image',
      source: { type: 'base64', ...mediaFile('wide.png') },
      param: 'images[0]',
    };
    await expect(run({ media: [image] })).rejects.toMatchObject({
      code: 'unsupported_modality',
      param: 'images[0]',
      message: expect.stringContaining('reads text and audio only'),
    });
  });

  it('recordings that are too long for the prompt, before anything is encoded', async () => {
    const media = ['a', 'b', 'c'].map((_, i) => recording('long.flac', `audio[${i}]`));
    const encoded = await machine.metric('assay_audio_decoded_total');
    await expect(run({ media })).rejects.toMatchObject({ code: 'input_too_long' });
    expect(await machine.metric('assay_audio_decoded_total')).toBe(encoded);
  });

  it('an hour of silence, and counts it', async () => {
    const refused = await machine.metric('assay_audio_refused_total{reason="too_large"}');
    await expect(run({ media: [recording('hour-of-silence.flac')] })).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'audio[0]',
      message: expect.stringContaining('longer than 600 seconds'),
    });
    expect(await machine.metric('assay_audio_refused_total{reason="too_large"}')).toBe(refused + 1);
    expect((await chat(partsOf(cases[0]!))).usage.promptTokens).toBe(cases[0]!.prompt.length);
  });
});

describe('Ultravox, whose template knows texts only', () => {
  let ultravox: Machine;
  beforeAll(async () => {
    ultravox = await startMachine('../media/ultravox', { maxPromptLen: 1536 });
  });
  afterAll(() => ultravox.close());

  it('answers tasks about recordings of two lengths, packed as each alone', async () => {
    const probabilities = { orders: 1, calibrated: false };
    const ask = async (file: string, asked: readonly DecideTask[]) => {
      await ultravox.load();
      const batch: TaskBatch = {
        model: MODEL,
        input: { context: 'who speaks' },
        media: [recording(file)],
        tasks: asked,
        temperature: 0,
        maxOutputTokens: 16,
        probabilities,
      };
      const { answers, usage } = await ultravox.backend.runTasks(batch, newCall());
      return { usage, logprobs: answers.map(({ optionLogprobs }) => optionLogprobs!) };
    };
    const lengths: number[] = [];
    for (const file of ['short.wav', 'long.flac']) {
      const { logprobs, usage } = await ask(file, tasks);
      lengths.push(usage.promptTokens);
      for (const [i, task] of tasks.slice(0, 2).entries()) {
        const [alone] = (await ask(file, [task])).logprobs;
        for (const [option, logprob] of alone!.entries()) {
          expect(Math.abs(logprob - logprobs[i]![option]!)).toBeLessThan(1e-5);
        }
      }
    }
    // 2 and 33 seconds: 13 and 188 + 19 tokens.
    expect(lengths[1]! - lengths[0]!).toBe(188 + 19 - 13);
  });
});
