import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { expect, test } from 'vitest';
import type { MediaPart } from '../../lib/contract/conversation.ts';
import type { ImageFamily } from '../media/families/family.ts';
import type { Work } from '../protocol/messages.ts';
import { type BetweenSteps, featuresOf, MediaEncoder, type MediaItem } from './media-encoder.ts';

const TILE = { width: 1, height: 1 };
const WIDTH = 4;
/** Bytes of the features of one image: a row of `WIDTH` 32-bit floats. */
const ITEM_BYTES = WIDTH * 4;

/** Reads each image as one token. */
const FAMILY: ImageFamily = {
  kind: 'image',
  mark: '<image>',
  token: 1,
  inputNames: ['pixels'],
  output: 'features',
  layout: () => ({ plan: { filter: 'box', sizes: [], rows: 0, columns: 0, tile: TILE }, text: '<image>', tokens: 1 }),
  inputs: (pixels) => [{ name: 'pixels', type: 'float32', data: Float32Array.from(pixels), dims: [3] }],
};

// A cast, because the encoder uses only these three members of the session.
const SESSION = {
  inputNames: ['pixels'],
  outputNames: ['features'],
  run: async () => ({ features: new Tensor('float32', new Float32Array(WIDTH), [1, WIDTH]) }),
} as unknown as InferenceSession;

function parts(...files: string[]): MediaPart[] {
  return files.map((file, i) => ({
    type: 'image',
    source: { type: 'base64', data: '', mimeType: '' },
    opened: { sha256: file.repeat(64), ...TILE },
    param: `images[${i}]`,
  }));
}

function workOn(media: MediaPart[]): Work {
  const settings = { model: 'a/b', tasks: [], temperature: 0, maxOutputTokens: 16 };
  return { kind: 'tasks', batch: { ...settings, input: { context: '' }, media } };
}

const preparedOf = ({ sha256, detail }: MediaItem) => ({ sha256, detail, data: new Uint8Array(3) });
const unhindered: BetweenSteps = (tile) => tile();

test("token ids match the features while another request's features exceed the cache", async () => {
  const encoder = new MediaEncoder(FAMILY, SESSION, WIDTH, 1.5 * ITEM_BYTES);
  const media = parts('a', 'b', 'c');
  const items = encoder.of(workOn(media));
  const prepared = items.map(preparedOf);
  const signal = new AbortController().signal;
  const others: { ids: number[]; items: MediaItem[] }[] = [];
  // Before each tile a further request about the same images arrives.
  const between: BetweenSteps = (tile) => {
    const found = encoder.of(workOn(media));
    others.push({ items: found, ids: media.map((part) => encoder.write(part).firstId) });
    return tile();
  };
  expect(await encoder.encode(items, prepared, { between, signal })).toBe(3);
  expect(others).toHaveLength(3);
  for (const other of others) {
    await encoder.encode(other.items, prepared, { between: unhindered, signal });
    expect(featuresOf(other.items).map(({ firstId }) => firstId)).toEqual(other.ids);
  }
});

test('features beyond the bound of the cache are encoded again', async () => {
  const encoder = new MediaEncoder(FAMILY, SESSION, WIDTH, 1.5 * ITEM_BYTES);
  const encoded: number[] = [];
  for (const file of ['a', 'a', 'b', 'a']) {
    const items = encoder.of(workOn(parts(file)));
    const settings = { between: unhindered, signal: new AbortController().signal };
    encoded.push(await encoder.encode(items, items.map(preparedOf), settings));
  }
  expect(encoded).toEqual([1, 0, 1, 1]);
});
