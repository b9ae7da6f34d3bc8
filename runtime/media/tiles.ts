import { type PixelPlan, pixelBytes } from './pixel-plan.ts';
import { type RgbImage, resize } from './resize.ts';

/**
 * Returns the pixels of an image's tiles, with three bytes each: the tiles row by row, and then the tile of the whole
 * image.
 */
export function cutTiles(image: RgbImage, plan: PixelPlan): Uint8Array {
  const { filter, sizes, rows, columns, tile } = plan;
  const resized = sizes.reduce<RgbImage>((from, { width, height }) => resize(from, width, height, filter), image);
  const tiles = new Uint8Array(pixelBytes(plan));
  const line = tile.width * 3;
  let into = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      for (let y = 0; y < tile.height; y++, into += line) {
        const from = ((row * tile.height + y) * resized.width + column * tile.width) * 3;
        tiles.set(resized.data.subarray(from, from + line), into);
      }
    }
  }
  tiles.set(resize(resized, tile.width, tile.height, filter).data, into);
  return tiles;
}
