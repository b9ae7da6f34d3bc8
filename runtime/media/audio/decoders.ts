import { FLACDecoder } from '@wasm-audio-decoders/flac';
import { OggVorbisDecoder } from '@wasm-audio-decoders/ogg-vorbis';
import { MPEGDecoder } from 'mpg123-decoder';
import { OggOpusDecoder } from 'ogg-opus-decoder';
import { AudioFault } from './audio-fault.ts';
import type { Codec } from './sniff-audio.ts';
import { statedLength, xingHeader } from './stated-length.ts';

/** Holds the samples that a decoder returns, with one array for each channel. */
export interface Decoded {
  channelData: readonly Float32Array[];
  samplesDecoded: number;
  sampleRate: number;
  /** Bits per sample; only FLAC files have it. */
  bitDepth?: number;
  errors: readonly { message: string }[];
}

/** Lists the methods that the decoders of all formats have. */
interface Decoder {
  readonly ready: Promise<void>;
  decode(bytes: Uint8Array): Decoded | Promise<Decoded>;
  flush?(): Promise<Decoded>;
  free(): void;
}

const DECODERS: Readonly<Record<Exclude<Codec, 'wav'>, () => Decoder>> = {
  mp3: () => new MPEGDecoder(),
  flac: () => new FLACDecoder(),
  vorbis: () => new OggVorbisDecoder(),
  opus: () => new OggOpusDecoder(),
};

/**
 * Number of bytes to decode at a time. It is small, because FLAC compresses silence a thousandfold, and more with many
 * channels.
 */
const PIECE_BYTES = 8192;

/**
 * Yields the samples of a file, decoded in pieces of `PIECE_BYTES`. Throws `AudioFault` if the file is damaged or cut
 * off.
 */
export async function* decodePieces(codec: Exclude<Codec, 'wav'>, bytes: Uint8Array): AsyncGenerator<Decoded> {
  const decoder = DECODERS[codec]();
  await decoder.ready;
  let frames = 0;
  const checked = (decoded: Decoded): Decoded => {
    const [error] = decoded.errors;
    if (error) throw new AudioFault('undecodable', error.message);
    frames += decoded.samplesDecoded;
    rescale(decoded);
    return decoded;
  };
  try {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      yield checked(await decoder.decode(bytes.subarray(from, from + PIECE_BYTES)));
    }
    if (decoder.flush) yield checked(await decoder.flush());
  } finally {
    decoder.free();
  }
  if (isCut(codec, bytes, frames)) throw new AudioFault('undecodable', 'it is cut off');
}

/**
 * Rescales FLAC samples to the values of libsndfile, which divides integers by a power of two; this decoder divides by
 * one less.
 */
function rescale({ channelData, bitDepth }: Decoded): void {
  if (!bitDepth) return;
  const half = 2 ** (bitDepth - 1);
  for (const samples of channelData) {
    for (let i = 0; i < samples.length; i++) samples[i] = ((samples[i] ?? 0) * (half - 1)) / half;
  }
}

/** Tells whether a file is cut off. Returns false if its format does not show this. */
function isCut(codec: Exclude<Codec, 'wav'>, bytes: Uint8Array, samples: number): boolean {
  if (codec === 'mp3') return isCutMp3(bytes);
  return codec === 'flac' ? isCutFlac(bytes, samples) : isCutOgg(bytes);
}

/** Tells whether fewer samples of each channel were decoded than a FLAC file states. */
function isCutFlac(bytes: Uint8Array, samples: number): boolean {
  return samples < (statedLength('flac', bytes)?.samples ?? 0);
}

/** Tells whether an Ogg file lacks its last page, which has a flag (RFC 3533, section 6), or the end of that page. */
function isCutOgg(bytes: Uint8Array): boolean {
  const page = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf('OggS');
  const segments = bytes[page + 26] ?? 0;
  const table = bytes.subarray(page + 27, page + 27 + segments);
  const end = page + 27 + segments + table.reduce((sum, length) => sum + length, 0);
  return ((bytes[page + 5] ?? 0) & 4) === 0 || end > bytes.length;
}

/**
 * Tells whether an MP3 file has fewer bytes than its Xing header states. Most encoders write one; without it, returns
 * false.
 */
function isCutMp3(file: Uint8Array): boolean {
  const { offset = 0, bytes = 0 } = xingHeader(file) ?? {};
  return offset + bytes > file.length;
}
