import * as v from 'valibot';
import { FILTERS } from '../pixel-plan.ts';
import type { ImageFamily, Size } from './family.ts';

const Count = v.pipe(v.number(), v.integer(), v.minValue(1));

/**
 * Schema of the fields that this family needs of its published files: `config.json`, and the part for images of
 * `processor_config.json`.
 */
export const Gemma4Config = v.object({
  config: v.looseObject({
    image_token_id: v.pipe(v.number(), v.integer(), v.minValue(0)),
    // In place of an image, each layer reads the embedding of the padding token, for which the engine feeds the id 0.
    text_config: v.looseObject({ pad_token_id: v.optional(v.literal(0), 0) }),
  }),
  preprocessor: v.looseObject({
    patch_size: v.optional(v.pipe(Count, v.maxValue(64)), 16),
    pooling_kernel_size: v.optional(v.pipe(Count, v.maxValue(8)), 3),
    max_soft_tokens: v.optional(v.picklist([70, 140, 280, 560, 1120]), 280),
    resample: v.optional(v.picklist([1, 2, 3, 4, 5]), 3),
    rescale_factor: v.optional(v.number(), 1 / 255),
    do_normalize: v.optional(v.literal(false), false),
  }),
});
export type Gemma4Config = v.InferOutput<typeof Gemma4Config>;

const [BEGIN, IMAGE, END] = ['<|image>', '<|image|>', '<image|>'];
/** Smallest limit on the tokens of an image that the processor supports. */
const LOW_TOKENS = 70;

/**
 * Creates the family of Gemma 4, which reads an image as a whole, scaled to about as many pixels as its limit of tokens
 * allows. A square of `pooling_kernel_size`² patches gives one token. Source: transformers 5.24,
 * `image_processing_pil_gemma4.py` and `processing_gemma4.py`.
 */
export function gemma4({ config, preprocessor }: Gemma4Config): ImageFamily {
  const { patch_size: patch, pooling_kernel_size: pool, max_soft_tokens: most } = preprocessor;
  const filter = FILTERS[preprocessor.resample];
  const square = patch * pool;
  /** Float of each value of a byte, as numpy computes it. */
  const values = Float32Array.from({ length: 256 }, (_, byte) => byte * preprocessor.rescale_factor);
  const tokensOf = ({ width, height }: Size) => (width / square) * (height / square);

  return {
    kind: 'image',
    mark: IMAGE,
    token: config.image_token_id,
    inputNames: ['pixel_values', 'pixel_position_ids'],
    output: 'image_features',
    layout(image, detail) {
      const tile = fitTokens(image, square, detail === 'low' ? LOW_TOKENS : most);
      const tokens = tokensOf(tile);
      return {
        plan: { filter, sizes: [], rows: 0, columns: 0, tile },
        text: `${BEGIN}${IMAGE.repeat(tokens)}${END}`,
        tokens,
      };
    },
    inputs(pixels, tile) {
      // Padded to the limit as the processors do, since published graphs may be made for that number of patches.
      const patches = most * pool ** 2;
      const { data, positions } = cutPatches(pixels, tile, { patch, patches, values });
      return [
        { name: 'pixel_values', type: 'float32', data, dims: [1, patches, 3 * patch ** 2] },
        { name: 'pixel_position_ids', type: 'int64', data: positions, dims: [1, patches, 2] },
      ];
    },
    // Graphs may also give features of the padding, which come last.
    used: tokensOf,
  };
}

/**
 * Returns the size to which an image is resized: both sides are multiples of `square`, the aspect ratio is about the
 * same, and the image has at most `tokens` squares.
 */
function fitTokens({ width, height }: Size, square: number, tokens: number): Size {
  const factor = Math.sqrt((tokens * square ** 2) / (height * width));
  const down = (side: number) => Math.floor((factor * side) / square) * square;
  const longest = (ratio: number) => Math.min(Math.floor(ratio), tokens) * square;
  const fitted = { width: down(width), height: down(height) };
  if (fitted.height === 0) return { width: longest(width / height), height: square };
  if (fitted.width === 0) return { width: square, height: longest(height / width) };
  return fitted;
}

/**
 * Returns the values of an image's patches, `[patches, patch, patch, channels]`, row by row, and the column and row of
 * each patch. Padding has zeros as values and -1 as position.
 */
function cutPatches(
  pixels: Uint8Array,
  { width, height }: Size,
  { patch, patches, values }: { patch: number; patches: number; values: Float32Array },
): { data: Float32Array; positions: BigInt64Array } {
  const line = patch * 3;
  const data = new Float32Array(patches * patch * line);
  const positions = new BigInt64Array(patches * 2).fill(-1n);
  let into = 0;
  let index = 0;
  for (let row = 0; row < height / patch; row++) {
    for (let column = 0; column < width / patch; column++) {
      positions[index++] = BigInt(column);
      positions[index++] = BigInt(row);
      for (let y = 0; y < patch; y++) {
        const from = ((row * patch + y) * width + column * patch) * 3;
        for (let i = from; i < from + line; i++) data[into++] = values[pixels[i] ?? 0] ?? 0;
      }
    }
  }
  return { data, positions };
}
