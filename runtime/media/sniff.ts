/** Media types of the supported audio formats. */
export const AUDIO_TYPES = ['audio/wav', 'audio/mpeg', 'audio/flac', 'audio/ogg'] as const;
export type AudioType = (typeof AUDIO_TYPES)[number];

/** Names the supported codecs. An Ogg file contains one of the last two. */
export type Codec = 'wav' | 'mp3' | 'flac' | 'vorbis' | 'opus';

const TYPE_OF: Readonly<Record<Codec, AudioType>> = {
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  flac: 'audio/flac',
  vorbis: 'audio/ogg',
  opus: 'audio/ogg',
};

/** Returns the media type of an audio file by its first bytes; null if the format is not supported. */
export function sniffAudio(bytes: Uint8Array): AudioType | null {
  const codec = sniffCodec(bytes);
  return codec && TYPE_OF[codec];
}

/** Returns the codec of an audio file by its first bytes; null if it is not supported. */
export function sniffCodec(bytes: Uint8Array): Codec | null {
  const has = (text: string, at: number) => [...text].every((c, i) => bytes[at + i] === c.charCodeAt(0));
  if (has('RIFF', 0) && has('WAVE', 8)) return 'wav';
  if (has('fLaC', 0)) return 'flac';
  if (has('OggS', 0)) {
    // Offset of the first packet in the first page: a header of 27 bytes, then a table with one byte for each segment
    // (RFC 3533).
    const packet = 27 + (bytes[26] ?? 0);
    if (has('OpusHead', packet)) return 'opus';
    return has('\x01vorbis', packet) ? 'vorbis' : null;
  }
  return has('ID3', 0) || isMp3Frame(bytes) ? 'mp3' : null;
}

/** Tells whether a file begins with the header of an MPEG layer III frame. AAC files have the same first 12 bits. */
function isMp3Frame(bytes: Uint8Array): boolean {
  const [first = 0, second = 0, third = 0] = bytes;
  const version = (second >> 3) & 3;
  const layer = (second >> 1) & 3;
  const bitRate = third >> 4;
  const rate = (third >> 2) & 3;
  return first === 0xff && second >> 5 === 7 && version !== 1 && layer === 1 && bitRate !== 15 && rate !== 3;
}

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
