import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { IMAGE_TYPES, sniffImage } from '../../../runtime/media/sniff.ts';
import { UsageError } from '../usage-error.ts';
import { whyNotRead } from './read-input.ts';

export interface ImageFlags {
  image?: string[];
}

/** Help of the flag that names images. */
export const IMAGE_HELP = 'file with an image that the model reads; repeat it for each';

/** Holds an image of a request, as `images` takes it. */
export interface SentImage {
  type: 'base64';
  mime_type: string;
  data: string;
}

/** Reads the images that `--image` names. Throws `UsageError` for a file that is not there, or no image. */
export function readImages({ image = [] }: ImageFlags): Promise<SentImage[]> {
  return Promise.all(image.map(readImage));
}

async function readImage(file: string): Promise<SentImage> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  });
  const type = sniffImage(bytes);
  if (!type) throw new UsageError(`${resolve(file)} is no image of these types: ${IMAGE_TYPES.join(', ')}.`);
  return { type: 'base64', mime_type: type, data: bytes.toString('base64') };
}

/** Returns an image as a data URL. */
export function dataUrl({ mime_type: type, data }: SentImage): string {
  return `data:${type};base64,${data}`;
}
