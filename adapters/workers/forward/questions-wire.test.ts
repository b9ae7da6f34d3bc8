import { describe, expect, it } from 'vitest';
import type { TaskBatch } from '../../../lib/backend.ts';
import type { MediaPart, Part } from '../../../lib/contract/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { questionsBody, withBatchParam } from './questions-wire.ts';

const image = (param: string): MediaPart => ({ type: 'image', source: { type: 'url', url: `data:${param}` }, param });
const text: Part = { type: 'text', text: 't' };
const batch = (input: TaskBatch['input'], media: MediaPart[]): TaskBatch => ({
  model: 'a/b',
  input,
  media,
  tasks: [],
  temperature: 0,
  maxOutputTokens: 16,
});
const inContext = batch({ context: 'c' }, [image('images[0]'), image('assets.b')]);
const inMessages = batch(
  {
    messages: [
      { role: 'user', parts: [image('m0'), text] },
      { role: 'user', parts: [text, image('m1')] },
    ],
  },
  [image('q0')],
);
const afterAnswer = batch({ messages: [{ role: 'assistant', parts: [text] }] }, [image('q0')]);

describe('images', () => {
  it.each([
    ['come before the context', inContext, [['data:images[0]', 'data:assets.b', 'c']]],
    [
      'come before the last message of the user',
      inMessages,
      [
        ['data:m0', 't'],
        ['data:q0', 't', 'data:m1'],
      ],
    ],
    ['are a message of their own behind an answer', afterAnswer, [['t'], ['data:q0']]],
  ])('%s', (_, asked, contents) => {
    const { input } = JSON.parse(questionsBody(asked));
    const shown = input.map(({ content }: { content: { text?: string; image_url?: string }[] }) =>
      content.map((part) => part.text ?? part.image_url),
    );
    expect(shown).toEqual(contents);
  });
});

it.each([
  ['audio/wav', { input_audio: { data: 'UklGRg==', format: 'wav' } }],
  ['audio/mpeg', { input_audio: { data: 'UklGRg==', format: 'mp3' } }],
  ['audio/mp3', { audio_url: 'data:audio/mp3;base64,UklGRg==' }],
  ['application/ogg', { audio_url: 'data:application/ogg;base64,UklGRg==' }],
])('audio of the type %s keeps its type', (mimeType, sent) => {
  const audio: MediaPart = { type: 'audio', source: { type: 'base64', data: 'UklGRg==', mimeType }, param: 'audio[0]' };
  const { input } = JSON.parse(questionsBody(batch({ context: 'c' }, [audio])));
  const part = { type: 'input_audio', ...sent };
  expect(input).toEqual([{ role: 'user', content: [part, { type: 'input_text', text: 'c' }] }]);
});

describe("an upstream's error about an image names that of the caller", () => {
  it.each([
    ['input[0].content[1].image_url', inContext, 'assets.b'],
    ['input[1].content[0].image_url', inMessages, 'q0'],
    ['input[1].content[0].audio_url', inMessages, 'q0'],
    ['input[1].content[0].input_audio', inMessages, 'q0'],
    ['input[1].content[2].image_url', inMessages, 'm1'],
    ['input[1].content[0].image_url', afterAnswer, 'q0'],
    ['input[9].content[0].image_url', inContext, 'input[9].content[0].image_url'],
    ['questions[0].type', inContext, 'questions[0].type'],
  ])('%s', (param, asked, here) => {
    const error = new AssayError('invalid_value', `${param} is damaged.`, { param });
    expect(withBatchParam(error, asked)).toMatchObject({
      code: 'invalid_value',
      param: here,
      message: `${here} is damaged.`,
    });
  });
});
