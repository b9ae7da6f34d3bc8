import type { Sharp } from 'sharp';
import sharp from 'sharp';
import { type PixelPlan, pixelBytes } from './pixel-plan.ts';
import { type RgbImage, resize } from './resize.ts';

// libvips can load dozens of formats, including SVG with external references; only these loaders stay enabled.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadWebpBuffer',
    'VipsForeignLoadNsgifBuffer',
  ],
});
sharp.cache(false);
sharp.concurrency(1);

/**
 * Returns the size of an image in pixels, after the orientation of its EXIF data is applied. Reads only the headers of
 * the file. Throws an `Error` if they are damaged or state more than `MOST_PIXELS`.
 */
export async function imageSize(bytes: Uint8Array): Promise<{ width: number; height: number }> {
  const { autoOrient } = await open(bytes).metadata();
  return { width: autoOrient.width, height: autoOrient.height };
}

/**
 * Decodes an image as Pillow does: its first frame, with the orientation of its EXIF data applied, without alpha, and
 * ignoring its colour profile. Throws an `Error` for a damaged file, and for one with more than `MOST_PIXELS`.
 */
export async function decodeImage(bytes: Uint8Array): Promise<RgbImage> {
  if ((await open(bytes).metadata()).space === 'cmyk') return decodeCmyk(bytes);
  const image = open(bytes).autoOrient().removeAlpha().toColourspace('srgb');
  const { data, info } = await image.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  if (info.channels !== 3) throw new Error(`decoded to ${info.channels} channels`);
  return { width: info.width, height: info.height, data };
}

/** Decodes an image with four inks. Pillow multiplies them, where libvips converts through the profile of a press. */
async function decodeCmyk(bytes: Uint8Array): Promise<RgbImage> {
  const image = open(bytes).pipelineColourspace('cmyk').autoOrient().toColourspace('cmyk');
  const { data: inks, info } = await image.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  if (info.channels !== 4) throw new Error(`decoded to ${info.channels} channels`);
  const data = new Uint8Array(info.width * info.height * 3);
  for (let i = 0, to = 0; i < inks.length; i += 4) {
    const paper = 255 - (inks[i + 3] ?? 0);
    for (let ink = 0; ink < 3; ink++) data[to++] = Math.max(0, paper - multiplied(inks[i + ink] ?? 0, paper));
  }
  return { width: info.width, height: info.height, data };
}

/** Returns a * b / 255, rounded as Pillow does. */
function multiplied(a: number, b: number): number {
  const product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

function open(bytes: Uint8Array): Sharp {
  return sharp(bytes, { limitInputPixels: MOST_PIXELS, failOn: 'error', ignoreIcc: true, pages: 1 });
}

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

/**
 * Maximum number of pixels of an image: more than phone cameras usually have. Such an image takes 120 MB once decoded.
 */
export const MOST_PIXELS = 40_000_000;
