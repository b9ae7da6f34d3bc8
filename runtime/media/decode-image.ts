import sharp, { type Sharp } from 'sharp';
import { MOST_PIXELS } from './limits.ts';
import type { RgbImage } from './resize.ts';

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
  const image = open(bytes).autoOrient().removeAlpha().toColourspace('srgb');
  const { data, info } = await image.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  if (info.channels !== 3) throw new Error(`decoded to ${info.channels} channels`);
  return { width: info.width, height: info.height, data };
}

function open(bytes: Uint8Array): Sharp {
  return sharp(bytes, { limitInputPixels: MOST_PIXELS, failOn: 'error', ignoreIcc: true, pages: 1 });
}
