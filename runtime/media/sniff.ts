/** Media types of the supported image formats. */
export const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/webp', 'image/gif'] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];

/** Returns the media type of an image by its first bytes; null if the format is not supported. */
export function sniffImage(bytes: Uint8Array): ImageType | null {
  const starts = (text: string, at = 0) => [...text].every((c, i) => bytes[at + i] === c.charCodeAt(0));
  if (starts('\xff\xd8\xff')) return 'image/jpeg';
  if (starts('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (starts('RIFF') && starts('WEBP', 8)) return 'image/webp';
  return starts('GIF87a') || starts('GIF89a') ? 'image/gif' : null;
}
