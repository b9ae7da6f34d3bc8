import { AssayError } from './errors.ts';
import type { AudioInput, ImageInput } from './generated/types.gen.ts';

type Signature = readonly [type: string, start: string, at: number];

/** Signatures of the formats that the server reads: media type, first bytes, and their offset. */
const IMAGES: readonly Signature[] = [
  ['image/jpeg', '\xff\xd8\xff', 0],
  ['image/png', '\x89PNG\r\n\x1a\n', 0],
  ['image/webp', 'WEBP', 8],
  ['image/gif', 'GIF8', 0],
];
const RECORDINGS: readonly Signature[] = [
  ['audio/wav', 'WAVE', 8],
  ['audio/flac', 'fLaC', 0],
  ['audio/ogg', 'OggS', 0],
  ['audio/mpeg', 'ID3', 0],
];
const CHUNK = 0x8000;

/**
 * Turns the bytes of an image file into an input of a request: `images: [imageInput(await readFile('receipt.jpg'))]`.
 * Throws an `AssayError` for a format that the server does not read.
 */
export function imageInput(bytes: Uint8Array): ImageInput {
  const type = typeOf(bytes, IMAGES);
  if (!type) throw new AssayError('The image is not in a format that Assay reads. Send JPEG, PNG, WebP or GIF.');
  return { type: 'base64', mime_type: type, data: base64(bytes) };
}

/**
 * Turns the bytes of a recording into an input of a request: `audio: [audioInput(await readFile('call.mp3'))]`.
 * Throws an `AssayError` for a format that the server does not read.
 */
export function audioInput(bytes: Uint8Array): AudioInput {
  const type = typeOf(bytes, RECORDINGS) ?? (isMp3Frame(bytes) ? 'audio/mpeg' : undefined);
  if (!type) throw new AssayError('The recording is not in a format that Assay reads. Send WAV, MP3, FLAC or Ogg.');
  return { type: 'base64', mime_type: type, data: base64(bytes) };
}

function typeOf(bytes: Uint8Array, signatures: readonly Signature[]): string | undefined {
  return signatures.find(([, start, at]) => [...start].every((c, i) => bytes[at + i] === c.charCodeAt(0)))?.[0];
}

/**
 * Tells whether bytes begin with the frame header of MPEG layer III (MP3). AAC has a similar header with another layer.
 */
function isMp3Frame([first = 0, second = 0]: Uint8Array): boolean {
  return first === 0xff && (second & 0xe6) === 0xe2;
}

function base64(bytes: Uint8Array): string {
  let text = '';
  for (let from = 0; from < bytes.length; from += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(from, from + CHUNK));
  }
  return btoa(text);
}
