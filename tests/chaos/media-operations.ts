import type { MediaKind } from '../../lib/contract/conversation.ts';
import type { Random } from '../../runtime/engine/random.ts';
import { mediaFile } from '../media/golden.ts';
import { AUDIO, EVENTS, integer, type Make, type Operation, pick, post, text } from './request.ts';

const IMAGES = ['wide.png', 'tall.jpg', 'square.webp', 'strip.gif', 'large.png'];
const RECORDINGS = ['short.wav', 'pair.mp3', 'pair.flac', 'pair.ogg', 'opus.ogg'];
/** Share of files that are cut somewhere. */
const CUT = 0.2;

/** Returns an image, or a recording for the model that reads those, as base64; now and then cut off. */
function fileFor(random: Random, model: string): { kind: MediaKind; data: string; mimeType: string } {
  const kind = model === AUDIO ? 'audio' : 'image';
  const { data, mimeType } = mediaFile(pick(random, kind === 'audio' ? RECORDINGS : IMAGES));
  const length = random.uniform() < CUT ? 4 * (1 + integer(random, data.length / 4 - 1)) : data.length;
  return { kind, data: data.slice(0, length), mimeType };
}

/** Writes a file as a part of `POST /v1/decisions` and `POST /v1/responses`. */
function inputPart(random: Random, model: string): object {
  const { kind, data, mimeType } = fileFor(random, model);
  const url = `data:${mimeType};base64,${data}`;
  return kind === 'image' ? { type: 'input_image', image_url: url } : { type: 'input_audio', audio_url: url };
}

/** Writes a file as a part of a chat. */
function chatPart(random: Random, model: string): object {
  const { kind, data, mimeType } = fileFor(random, model);
  return kind === 'image'
    ? {
        type: 'image_url',
        image_url: { url: `data:${mimeType};base64,${data}`, detail: pick(random, ['low', 'auto']) },
      }
    : { type: 'audio', audio: { type: 'base64', mime_type: mimeType, data } };
}

const tasks: Make = (random, model) => {
  const files = Array.from({ length: 1 + integer(random, 3) }, () => fileFor(random, model));
  const inputs = files.map(({ data, mimeType }) => ({ type: 'base64', mime_type: mimeType, data }));
  return post('/v1/tasks', {
    model,
    context: text(random, 10),
    [files[0]?.kind === 'audio' ? 'audio' : 'images']: inputs,
    max_output_tokens: 16,
    tasks: [
      { type: 'decide', name: 'a', question: text(random, 6), options: ['yes', 'no'] },
      { type: 'extract', name: 'b', instruction: text(random, 4), keys: ['item'] },
    ],
  });
};

const chat: Make = (random, model) => {
  const stream = random.uniform() < 0.5;
  const content = [{ type: 'text', text: text(random, 10) }, chatPart(random, model)];
  const body = { model, messages: [{ role: 'user', content }], max_tokens: 1 + integer(random, 24), stream };
  return post('/v1/chat/completions', body, stream ? EVENTS : undefined);
};

const decisions: Make = (random, model) =>
  post('/v1/decisions', {
    model,
    input: [{ role: 'user', content: [inputPart(random, model), { type: 'input_text', text: text(random, 10) }] }],
    questions: [{ type: 'predicate', instructions: text(random, 5) }],
  });

/** Writes a request of `POST /v1/responses`, half of them with a file. */
export const responses: Make = (random, model) => {
  const stream = random.uniform() < 0.5;
  const words = { type: 'input_text', text: text(random, 20) };
  const content = random.uniform() < 0.5 ? [words] : [words, inputPart(random, model)];
  const body = { model, input: [{ role: 'user', content }], max_output_tokens: 1 + integer(random, 24), stream };
  return post('/v1/responses', body, stream ? EVENTS : undefined);
};

/** Requests with images or recordings; a model that does not read them refuses them. */
export const MEDIA_CALLS: readonly [number, Make][] = [
  [2, tasks],
  [2, chat],
  [1, decisions],
  [3, responses],
];

/** Asks about a whole image, or a whole recording. */
export function imageOrAudio(model: string): Operation {
  const { data, mimeType } = mediaFile(model === AUDIO ? 'short.wav' : 'wide.png');
  const input = [{ type: 'base64', mime_type: mimeType, data }];
  const media = model === AUDIO ? { audio: input } : { images: input };
  return post('/decide', { model, context: '', ...media, question: 'Is it?', options: ['yes', 'no'] });
}
