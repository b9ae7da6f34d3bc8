import * as v from 'valibot';
import { FILTERS, normalisation } from '../pixel-plan.ts';
import type { ImageFamily, ImageLayout, Size } from './family.ts';

const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(4096));
const Channels = v.tuple([v.number(), v.number(), v.number()]);

/**
 * Schema of the fields that this family needs of its published files (`config.json`, `preprocessor_config.json`,
 * `processor_config.json`).
 */
export const Idefics3Config = v.object({
  config: v.looseObject({ image_token_id: v.pipe(v.number(), v.integer(), v.minValue(0)) }),
  preprocessor: v.looseObject({
    size: v.looseObject({ longest_edge: Side }),
    max_image_size: v.looseObject({ longest_edge: Side }),
    do_image_splitting: v.optional(v.boolean(), true),
    resample: v.optional(v.picklist([1, 2, 3, 4, 5]), 1),
    rescale_factor: v.optional(v.number(), 1 / 255),
    image_mean: v.optional(Channels, [0.5, 0.5, 0.5]),
    image_std: v.optional(Channels, [0.5, 0.5, 0.5]),
  }),
  processor: v.looseObject({ image_seq_len: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(4096)) }),
});
export type Idefics3Config = v.InferOutput<typeof Idefics3Config>;

/** Largest side in pixels to which the published processor resizes an image. */
const MOST_SIDE = 4096;
const [FAKE, IMAGE, GLOBAL] = ['<fake_token_around_image>', '<image>', '<global-img>'];

/**
 * Creates the family of Idefics3 and SmolVLM, which read an image as tiles, row by row, and then as a whole. Source:
 * transformers 4.57, `image_processing_idefics3.py` and `processing_idefics3.py`.
 */
export function idefics3({ config, preprocessor, processor }: Idefics3Config): ImageFamily {
  const side = preprocessor.max_image_size.longest_edge;
  const tile = { width: side, height: side };
  const perTile = processor.image_seq_len;
  const normalise = normalisation(preprocessor.rescale_factor, preprocessor.image_mean, preprocessor.image_std);
  const filter = FILTERS[preprocessor.resample];

  return {
    kind: 'image',
    mark: IMAGE,
    token: config.image_token_id,
    inputNames: ['pixel_values', 'pixel_attention_mask'],
    output: 'image_features',
    layout(size, detail): ImageLayout {
      const scaled = longestEdge(size, Math.min(preprocessor.size.longest_edge, MOST_SIDE));
      if (detail === 'low' || !preprocessor.do_image_splitting) {
        const plan = { filter, sizes: [scaled], rows: 0, columns: 0, tile };
        return { plan, text: wholeImage(perTile), tokens: perTile };
      }
      const whole = wholeTiles(scaled, side);
      const split = whole.width > side || whole.height > side;
      const rows = split ? whole.height / side : 0;
      const columns = split ? whole.width / side : 0;
      const plan = { filter, sizes: [scaled, whole], rows, columns, tile };
      return { plan, text: prompt(rows, columns, perTile), tokens: (rows * columns + 1) * perTile };
    },
    inputs: (pixels) => [
      { name: 'pixel_values', type: 'float32', data: normalise(pixels), dims: [1, 1, 3, side, side] },
      {
        name: 'pixel_attention_mask',
        type: 'bool',
        data: new Uint8Array(side * side).fill(1),
        dims: [1, 1, side, side],
      },
    ],
  };
}

/** Returns the size of an image scaled so that its longest side is `edge` and the other side is even. */
function longestEdge({ width, height }: Size, edge: number): Size {
  const ratio = width / height;
  const even = (side: number) => Math.max(1, Math.trunc(side) + (Math.trunc(side) % 2));
  return width >= height ? { width: edge, height: even(edge / ratio) } : { width: even(edge * ratio), height: edge };
}

/** Returns the size of an image with both sides rounded up to whole tiles. */
function wholeTiles({ width, height }: Size, side: number): Size {
  const ratio = width / height;
  const up = (length: number) => Math.ceil(length / side) * side;
  if (width >= height) return { width: up(width), height: up(Math.trunc(up(width) / ratio)) };
  return { width: up(Math.trunc(up(height) * ratio)), height: up(height) };
}

function wholeImage(perTile: number): string {
  return `${FAKE}${GLOBAL}${IMAGE.repeat(perTile)}${FAKE}`;
}

function prompt(rows: number, columns: number, perTile: number): string {
  const tile = (row: number, column: number) => `${FAKE}<row_${row + 1}_col_${column + 1}>${IMAGE.repeat(perTile)}`;
  const line = (row: number) => `${Array.from({ length: columns }, (_, column) => tile(row, column)).join('')}\n`;
  const tiles = Array.from({ length: rows }, (_, row) => line(row)).join('');
  return `${tiles}${rows > 0 ? '\n' : ''}${wholeImage(perTile)}`;
}
