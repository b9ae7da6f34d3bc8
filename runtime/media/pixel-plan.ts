import * as v from 'valibot';
import { at } from '../../lib/at.ts';

/** Pillow's resampling filters, by the numbers that preprocessor files use for them (`PIL.Image.Resampling`). */
export const FILTERS = { 1: 'lanczos', 2: 'bilinear', 3: 'bicubic', 4: 'box', 5: 'hamming' } as const;
export type Filter = (typeof FILTERS)[keyof typeof FILTERS];

/** Maximum number of pixels on a side of a resized image. */
const MOST_SIDE = 65_536;
/** Maximum number of pixels of a resized image, and of all its tiles together. */
const MOST_RESIZED_PIXELS = 64 * 2 ** 20;

const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_SIDE));
const Size = v.pipe(
  v.strictObject({ width: Side, height: Side }),
  v.check(({ width, height }) => width * height <= MOST_RESIZED_PIXELS, 'too many pixels'),
);
const Count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(64));

/**
 * Plan for converting an image to tiles of one size: it is resized to each of `sizes` in turn, cut into `rows` ×
 * `columns` tiles (none if these are 0), and finally resized to one more tile, which shows the whole image.
 */
export const PixelPlan = v.pipe(
  v.strictObject({
    filter: v.picklist(Object.values(FILTERS)),
    sizes: v.pipe(v.array(Size), v.maxLength(4)),
    rows: Count,
    columns: Count,
    tile: Size,
  }),
  v.check((plan) => pixelBytes(plan) <= 3 * MOST_RESIZED_PIXELS, 'too many pixels'),
);
export type PixelPlan = v.InferOutput<typeof PixelPlan>;

interface Tiles {
  rows: number;
  columns: number;
  tile: { width: number; height: number };
}

/** Returns the number of bytes of one tile, with three for each pixel. */
export function tileBytes({ tile }: Tiles): number {
  return tile.width * tile.height * 3;
}

/** Returns the number of bytes of all tiles, including the one of the whole image. */
export function pixelBytes(plan: Tiles): number {
  return (plan.rows * plan.columns + 1) * tileBytes(plan);
}

/**
 * Returns a function that converts RGB pixels of three bytes to floats, one plane for each channel after another,
 * exactly as numpy computes `(pixel * scale - mean) / std` in 32 bits.
 */
export function normalisation(
  scale: number,
  mean: readonly number[],
  std: readonly number[],
): (pixels: Uint8Array) => Float32Array {
  const f = Math.fround;
  const tables = mean.map((middle, channel) =>
    Float32Array.from({ length: 256 }, (_, value) => f(f(f(value * scale) - f(middle)) / f(at(std, channel)))),
  );
  return (pixels) => {
    const plane = pixels.length / 3;
    const floats = new Float32Array(pixels.length);
    for (const [channel, table] of tables.entries()) {
      for (let i = 0, from = channel; i < plane; i++, from += 3)
        floats[channel * plane + i] = table[pixels[from] ?? 0] ?? 0;
    }
    return floats;
  };
}
