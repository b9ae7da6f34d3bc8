import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { dataUrlOf } from '../../../lib/data-url.ts';
import { AUDIO_TYPES, IMAGE_TYPES, sniffAudio, sniffImage } from '../../../runtime/media/sniff.ts';
import { UsageError } from '../usage-error.ts';
import { whyNotRead } from './read-input.ts';

export interface MediaFlags {
  image?: string[];
  audio?: string[];
}

/** Help text of `--image`. */
export const IMAGE_HELP = 'file with an image for the model; repeat the flag for each';
/** Help text of `--audio`. */
export const AUDIO_HELP = 'file with a recording for the model; repeat the flag for each';

/** Describes a media file as an item of a request's `images` or `audio`. */
export interface SentMedia {
  type: 'base64';
  mime_type: string;
  data: string;
}

/** Describes the media fields of a request's body, whose items are of type `T`. A field without files is absent. */
export interface MediaFields<T = SentMedia> {
  images?: T[];
  audio?: T[];
}

/**
 * Reads the files of `--image` and `--audio`. Throws `UsageError` for a file that cannot be read or has an unsupported
 * type.
 */
export async function readMedia({ image, audio }: MediaFlags): Promise<MediaFields> {
  return {
    ...(image ? { images: await Promise.all(image.map(readImage)) } : {}),
    ...(audio ? { audio: await Promise.all(audio.map(readRecording)) } : {}),
  };
}

async function readImage(file: string): Promise<SentMedia> {
  const bytes = await readBytes(file);
  const type = sniffImage(bytes);
  if (!type)
    throw new UsageError(
      `${resolve(file)} is not an image of a supported type. Supported are ${IMAGE_TYPES.join(', ')}.`,
    );
  return sent(type, bytes);
}

async function readRecording(file: string): Promise<SentMedia> {
  const bytes = await readBytes(file);
  const type = sniffAudio(bytes);
  if (!type)
    throw new UsageError(
      `${resolve(file)} is not a recording of a supported type. Supported are ${AUDIO_TYPES.join(', ')}.`,
    );
  return sent(type, bytes);
}

function readBytes(file: string): Promise<Buffer> {
  return readFile(file).catch((cause: unknown) => {
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  });
}

function sent(type: string, bytes: Buffer): SentMedia {
  return { type: 'base64', mime_type: type, data: bytes.toString('base64') };
}

/** Returns the same fields with each file as a `data:` URL. */
export function asDataUrls({ images, audio }: MediaFields): MediaFields<string> {
  const url = ({ mime_type: mimeType, data }: SentMedia) => dataUrlOf({ mimeType, data });
  return { ...(images ? { images: images.map(url) } : {}), ...(audio ? { audio: audio.map(url) } : {}) };
}
