import * as v from 'valibot';

/** Names of Pillow's resampling filters, by the number that preprocessor files give them (`PIL.Image.Resampling`). */
export const FILTERS = { 1: 'lanczos', 2: 'bilinear', 3: 'bicubic', 4: 'box', 5: 'hamming' } as const;
export type Filter = (typeof FILTERS)[keyof typeof FILTERS];

/** Largest side of a resized image, and most pixels of all tiles together. */
const MOST_SIDE = 8192;
const MOST_TILE_PIXELS = 64 * 2 ** 20;

const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_SIDE));
const Tiles = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(64));

/**
 * Describes how an image becomes square tiles: it is resized to each of the sizes in turn, cut into `rows` × `columns`
 * tiles (none if these are 0), and finally resized to one tile, which shows the whole.
 */
export const PixelPlan = v.pipe(
  v.strictObject({
    filter: v.picklist(Object.values(FILTERS)),
    sizes: v.pipe(v.array(v.strictObject({ width: Side, height: Side })), v.minLength(1), v.maxLength(4)),
    rows: Tiles,
    columns: Tiles,
    side: Side,
  }),
  v.check(({ rows, columns, side }) => (rows * columns + 1) * side ** 2 <= MOST_TILE_PIXELS, 'too many pixels'),
);
export type PixelPlan = v.InferOutput<typeof PixelPlan>;

/** Returns the number of tiles, the whole image included. */
function tilesOf({ rows, columns }: PixelPlan): number {
  return rows * columns + 1;
}

/** Returns the bytes of all tiles: three for each pixel. */
export function pixelBytes(plan: PixelPlan): number {
  return tilesOf(plan) * plan.side ** 2 * 3;
}
