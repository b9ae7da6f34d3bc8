import * as v from 'valibot';
import { FILTERS, normalisation } from '../pixel-plan.ts';
import type { ImageFamily, Size } from './family.ts';

const Count = v.pipe(v.number(), v.integer(), v.minValue(1));
const Side = v.pipe(Count, v.maxValue(256));
const Channels = v.tuple([v.number(), v.number(), v.number()]);

/** Schema of the fields that this family needs of its published files (`config.json`, `preprocessor_config.json`). */
export const QwenVlConfig = v.object({
  config: v.looseObject({ image_token_id: v.pipe(v.number(), v.integer(), v.minValue(0)) }),
  preprocessor: v.looseObject({
    patch_size: v.optional(Side, 14),
    temporal_patch_size: v.optional(v.pipe(Count, v.maxValue(8)), 2),
    merge_size: v.optional(v.pipe(Count, v.maxValue(8)), 2),
    min_pixels: v.nullish(Count),
    max_pixels: v.nullish(Count),
    /** Bounds on the number of pixels of an image, although the names say edges. */
    size: v.nullish(v.looseObject({ shortest_edge: v.nullish(Count), longest_edge: v.nullish(Count) })),
    resample: v.optional(v.picklist([1, 2, 3, 4, 5]), 3),
    rescale_factor: v.optional(v.number(), 1 / 255),
    image_mean: v.optional(Channels, [0.48145466, 0.4578275, 0.40821073]),
    image_std: v.optional(Channels, [0.26862954, 0.26130258, 0.27577711]),
  }),
});
export type QwenVlConfig = v.InferOutput<typeof QwenVlConfig>;

const IMAGE = '<|image_pad|>';
const [DEFAULT_MIN_PIXELS, DEFAULT_MAX_PIXELS] = [56 * 56, 28 * 28 * 1280];
/**
 * Maximum number of tokens of an image, and the number for `detail: low`: the ends of the range that the model cards of
 * the family recommend. The encoder reads an image in one run, and the memory for its attention grows with the square
 * of the number of tokens: for 16 heads 1.7 GB with 1,280 tokens, and 275 GB with the 16,384 that the processors allow.
 */
const [MOST_TOKENS, LOW_TOKENS] = [1280, 256];

/**
 * Creates the family of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, which read an image as a whole, at about its own size, in
 * patches. A square of `merge_size`² patches gives one token. An image uses at most `MOST_TOKENS` tokens, and at most
 * half of `maxPromptLen`. Source: transformers 4.57, `image_processing_qwen2_vl.py` and `processing_qwen2_vl.py`.
 */
export function qwenVl(
  { config, preprocessor }: QwenVlConfig,
  { maxPromptLen, deepstack = false }: { maxPromptLen: number; deepstack?: boolean },
): ImageFamily {
  const { patch_size: patch, merge_size: merge, temporal_patch_size: frames, size } = preprocessor;
  const normalise = normalisation(preprocessor.rescale_factor, preprocessor.image_mean, preprocessor.image_std);
  const filter = FILTERS[preprocessor.resample];
  const square = patch * merge;
  const most = Math.min(
    preprocessor.max_pixels ?? size?.longest_edge ?? DEFAULT_MAX_PIXELS,
    Math.min(MOST_TOKENS, Math.max(1, Math.floor(maxPromptLen / 2))) * square ** 2,
  );
  const fewest = Math.min(preprocessor.min_pixels ?? size?.shortest_edge ?? DEFAULT_MIN_PIXELS, most);

  return {
    kind: 'image',
    mark: IMAGE,
    token: config.image_token_id,
    inputNames: ['pixel_values', 'grid_thw', 'image_grid_thw'],
    output: 'image_features',
    mostAspect: 200,
    ...(deepstack ? { deepstack } : {}),
    layout(image, detail) {
      const max = detail === 'low' ? Math.min(most, Math.max(fewest, LOW_TOKENS * square ** 2)) : most;
      const tile = wholeSquares(image, { square, min: fewest, max });
      const columns = tile.width / square;
      const tokens = columns * (tile.height / square);
      return { plan: { filter, sizes: [], rows: 0, columns: 0, tile }, text: IMAGE.repeat(tokens), tokens, columns };
    },
    inputs(pixels, tile) {
      const [rows, columns] = [tile.height / patch, tile.width / patch];
      const values = cutPatches(normalise(pixels), tile, { patch, merge, frames });
      const grid = BigInt64Array.of(1n, BigInt(rows), BigInt(columns));
      return [
        {
          name: 'pixel_values',
          type: 'float32',
          data: values,
          dims: [rows * columns, values.length / (rows * columns)],
        },
        // Exports of Qwen2-VL use the first name, later ones the second.
        { name: 'grid_thw', type: 'int64', data: grid, dims: [1, 3] },
        { name: 'image_grid_thw', type: 'int64', data: grid, dims: [1, 3] },
      ];
    },
  };
}

/**
 * Returns the size to which an image is resized: both sides are multiples of `square`, the aspect ratio is about the
 * same, and the number of pixels is from `min` to `max`.
 */
function wholeSquares(
  { width, height }: Size,
  { square, min, max }: { square: number; min: number; max: number },
): Size {
  const whole = { width: roundToEven(width / square) * square, height: roundToEven(height / square) * square };
  if (whole.width * whole.height > max) {
    const shrink = Math.sqrt((height * width) / max);
    const down = (side: number) => Math.max(square, Math.floor(side / shrink / square) * square);
    return { width: down(width), height: down(height) };
  }
  if (whole.width * whole.height < min) {
    const grow = Math.sqrt(min / (height * width));
    const up = (side: number) => Math.ceil((side * grow) / square) * square;
    return { width: up(width), height: up(height) };
  }
  return whole;
}

/** Rounds a number to the nearest integer, and a half to the even neighbour, as Python does. */
function roundToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

/**
 * Splits planes of values into patches `[patches, channels, frames, patch, patch]`, in the order of squares of `merge`²
 * patches. All frames are copies of the image.
 */
function cutPatches(
  planes: Float32Array,
  { width, height }: Size,
  { patch, merge, frames }: { patch: number; merge: number; frames: number },
): Float32Array {
  const patches = new Float32Array(planes.length * frames);
  const square = patch * merge;
  let into = 0;
  for (let block = 0; block < (height / square) * (width / square); block++) {
    const top = Math.floor(block / (width / square)) * square;
    const left = (block % (width / square)) * square;
    for (let inner = 0; inner < merge ** 2; inner++) {
      const first = (top + Math.floor(inner / merge) * patch) * width + left + (inner % merge) * patch;
      for (let part = 0; part < 3 * frames; part++) {
        const from = Math.floor(part / frames) * width * height + first;
        for (let y = 0; y < patch; y++, into += patch) {
          const line = from + y * width;
          patches.set(planes.subarray(line, line + patch), into);
        }
      }
    }
  }
  return patches;
}
