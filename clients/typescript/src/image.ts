import { AssayError } from './errors.ts';
import type { ImageInput } from './generated/types.gen.ts';

/** Image formats that the server reads, each with bytes of its file header and their offset. */
const TYPES: readonly [type: string, start: string, at: number][] = [
  ['image/jpeg', '\xff\xd8\xff', 0],
  ['image/png', '\x89PNG\r\n\x1a\n', 0],
  ['image/webp', 'WEBP', 8],
  ['image/gif', 'GIF8', 0],
];
const CHUNK = 0x8000;

/**
 * Returns an image as a request takes it, from the bytes of its file: `images: [imageInput(await
 * readFile('receipt.jpg'))]`. Throws an `AssayError` for a format that the server does not read.
 */
export function imageInput(bytes: Uint8Array): ImageInput {
  const found = TYPES.find(([, start, at]) => [...start].every((c, i) => bytes[at + i] === c.charCodeAt(0)));
  if (!found) throw new AssayError('The image is not in a format that Assay reads. Send JPEG, PNG, WebP or GIF.');
  let text = '';
  for (let from = 0; from < bytes.length; from += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(from, from + CHUNK));
  }
  return { type: 'base64', mime_type: found[0], data: btoa(text) };
}
