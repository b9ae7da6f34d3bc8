import type { MediaKind, MediaPart } from '../../lib/contract/conversation.ts';
import { splitDataUrl } from '../../lib/data-url.ts';
import { AssayError } from '../../lib/errors.ts';
import { AUDIO_TYPES, type AudioType, sniffAudio } from './audio/sniff-audio.ts';
import { IMAGE_TYPES, type ImageType, sniffImage } from './sniff.ts';

/**
 * Returns the bytes of an image or audio part's file; null if the part is a web address. Throws `invalid_value`, which
 * names the part, for invalid base64, another kind of URL or an unsupported format.
 */
export function mediaBytes({ type: kind, source, param }: MediaPart): Uint8Array | null {
  if (source.type === 'url' && /^https?:/iu.test(source.url)) return null;
  const refuse = (message: string): never => {
    throw new AssayError('invalid_value', `${param} ${message}`, { param });
  };
  const { data } = source.type === 'base64' ? source : (splitDataUrl(source.url) ?? refuse(NO_FILE));
  const text = data.replace(/[\t\n\r ]+/gu, '');
  if (text.length % 4 !== 0 || !BASE64.test(text)) return refuse('is not valid base64. Encode the file again.');
  const bytes = Buffer.from(text, 'base64');
  // The stated type is not compared: many clients send one type for all images.
  checkFormat(kind, bytes, param);
  return bytes;
}

/**
 * Returns the media type of an image or audio file (`kind`) by its first bytes. Throws `invalid_value` if its format is
 * not supported for that kind.
 *
 * @param param path of the part in the request, for the message
 */
export function checkFormat(kind: MediaKind, bytes: Uint8Array, param: string): ImageType | AudioType {
  const type = kind === 'image' ? sniffImage(bytes) : sniffAudio(bytes);
  if (type) return type;
  throw new AssayError('invalid_value', `${param} is not in a supported format. Send ${NAMES[kind]}.`, { param });
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/u;
const named = (types: readonly string[]) => types.map((type) => type.replace(/^.*\//u, '').toUpperCase()).join(', ');
const NAMES = { image: named(IMAGE_TYPES), audio: named(AUDIO_TYPES).replace('MPEG', 'MP3') };
const NO_FILE = 'is neither a data: URL with base64 nor a web address. Send the file as base64 or as a data: URL.';
