import type { MediaPart } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { IMAGE_TYPES, namesType, sniffImage } from './sniff.ts';

/**
 * Returns the file of an image part. Throws `invalid_value` with the part's path for an address, for wrong base64, and
 * for a file of another format than one that is read or than was said.
 */
export function imageBytes({ source, param }: MediaPart): Uint8Array {
  const refuse = (message: string): never => {
    throw new AssayError('invalid_value', `${param} ${message}`, { param });
  };
  const { mimeType, data } = source.type === 'base64' ? source : (dataUrl(source.url) ?? refuse(NO_ADDRESS));
  const text = data.replace(/[\t\n\r ]+/gu, '');
  if (text.length % 4 !== 0 || !BASE64.test(text)) return refuse('is not valid base64. Encode the file again.');
  const bytes = Buffer.from(text, 'base64');
  const type = sniffImage(bytes);
  if (!type) return refuse(`is not in a format that is read. Send ${NAMES}.`);
  if (!namesType(mimeType, type)) {
    return refuse(`is ${type} by its first bytes, but was sent as ${mimeType.slice(0, 100)}. Correct the type.`);
  }
  return bytes;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/u;
const NAMES = IMAGE_TYPES.map((type) => type.replace('image/', '').toUpperCase()).join(', ');
const NO_ADDRESS =
  'is an address, and this server fetches none. Send the file itself, as base64 or as a data: URL with base64.';

/** Splits a data URL (RFC 2397) with base64; null for any other address. */
function dataUrl(url: string): { mimeType: string; data: string } | null {
  const comma = url.slice(0, 1000).indexOf(',');
  const head = /^data:([^,;]*)(?:;[^,]*)?;base64$/iu.exec(url.slice(0, Math.max(0, comma)));
  if (!head) return null;
  return { mimeType: head[1] ?? '', data: url.slice(comma + 1) };
}
