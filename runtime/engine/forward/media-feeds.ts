import { Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import type { Sequence } from '../cache/sequence.ts';
import type { InImage } from './rotary-positions.ts';

/**
 * First token id that stands for a feature of an image or recording. Such ids are above every vocabulary, and no two
 * files share one, so the KV cache never confuses two files.
 */
export const FIRST_MEDIA_ID = 2 ** 31;

/**
 * Holds the features that the media encoder computed for one image or recording: one row for each of the `count` ids
 * from `firstId` on that represent it in a prompt.
 */
export interface MediaFeatures {
  firstId: number;
  count: number;
  /**
   * Number of features in a row of the image, if the model uses their row and column; absent if they are positioned in
   * sequence, like text.
   */
  columns?: number;
  /** Feature values, `[count, width]`. */
  rows: Float32Array;
}

/**
 * Describes the KV cells of a sequence that one run computes, from `start` to before `end`, and the media whose tokens
 * may be among them.
 */
export interface Cells {
  sequence: Sequence;
  start: number;
  end: number;
  media?: readonly MediaFeatures[] | undefined;
}

/**
 * Returns the position of a token in its image. Returns undefined for text, and for images and recordings whose
 * features are positioned in sequence. Throws if the token belongs to none of the `known` media.
 */
export function inImage(token: number, known: readonly MediaFeatures[] = []): InImage | undefined {
  if (token < FIRST_MEDIA_ID) return undefined;
  const { firstId, count, columns } = mediaOf(token, known);
  return columns === undefined ? undefined : { index: token - firstId, rows: count / columns, columns };
}

/**
 * Returns the input tensors for the token ids of some cells. For cells that represent media, the id is 0 and the
 * feature row is fed instead. Throws if there are such cells and the model has no media input, or no entry of `media`
 * has their token.
 */
export function tokenFeeds(
  { inputs, media }: Pick<Manifest, 'inputs' | 'media'>,
  parts: readonly Cells[],
): Record<string, Tensor> {
  const tokens = parts.flatMap(({ sequence, start, end }) => [...sequence.tokens.subarray(start, end)]);
  const dims = [1, tokens.length];
  const ids = BigInt64Array.from(tokens, (token) => (token >= FIRST_MEDIA_ID ? 0n : BigInt(token)));
  const feeds: Record<string, Tensor> = { [inputs.tokens]: new Tensor('int64', ids, dims) };
  if (!media) {
    if (tokens.some((token) => token >= FIRST_MEDIA_ID)) throw new Error('this model accepts no images or recordings');
    return feeds;
  }
  const rows = new BigInt64Array(tokens.length);
  const found: Float32Array[] = [];
  let index = 0;
  for (const { sequence, start, end, media: known = [] } of parts) {
    for (let cell = start; cell < end; cell++, index++) {
      const token = at(sequence.tokens, cell);
      if (token >= FIRST_MEDIA_ID) rows[index] = BigInt(found.push(featureOf(token, known, media.width)));
    }
  }
  const features = new Float32Array((found.length + 1) * media.width);
  for (const [row, values] of found.entries()) features.set(values, (row + 1) * media.width);
  feeds[media.features] = new Tensor('float32', features, [found.length + 1, media.width]);
  feeds[media.rows] = new Tensor('int64', rows, dims);
  return feeds;
}

function featureOf(token: number, known: readonly MediaFeatures[], width: number): Float32Array {
  const { firstId, rows } = mediaOf(token, known);
  const row = token - firstId;
  return rows.subarray(row * width, (row + 1) * width);
}

function mediaOf(token: number, known: readonly MediaFeatures[]): MediaFeatures {
  const found = known.find(({ firstId, count }) => token >= firstId && token < firstId + count);
  if (!found) throw new Error(`no image or recording has the token ${token}`);
  return found;
}
