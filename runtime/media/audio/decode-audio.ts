import { FLACDecoder } from '@wasm-audio-decoders/flac';
import { OggVorbisDecoder } from '@wasm-audio-decoders/ogg-vorbis';
import { MPEGDecoder } from 'mpg123-decoder';
import { OggOpusDecoder } from 'ogg-opus-decoder';
import { type Codec, sniffCodec } from '../sniff.ts';
import {
  AudioFault,
  LEAST_RATE,
  MOST_CHANNELS,
  MOST_RATE,
  MOST_SAMPLES,
  MOST_SECONDS,
  PREPARED_RATE,
} from './limits.ts';
import { readWav } from './read-wav.ts';
import { Resampler } from './resample.ts';
import { statedLength, xingHeader } from './stated-length.ts';

/**
 * Decodes a recording to one channel at 16 kHz, with a full scale from −1 to 1: the mean of its channels, resampled.
 * Refuses a file before decoding if its headers state too long a recording, and stops as soon as too many samples are
 * decoded. Throws `AudioFault` for a file that is damaged, cut off, empty, too long or of an unsupported format.
 *
 * @param mostSamples number of samples at 16 kHz above which the recording is refused as `too_long`
 */
export async function decodeAudio(
  bytes: Uint8Array,
  mostSamples = MOST_SECONDS * PREPARED_RATE,
): Promise<Float32Array> {
  const codec = sniffCodec(bytes);
  if (!codec) throw new AudioFault('undecodable', 'its format is not known');
  const recording = new Recording(mostSamples);
  if (codec === 'wav') addWav(bytes, recording);
  else {
    const stated = statedLength(codec, bytes);
    if (stated) recording.checkLength(stated.samples, stated.rate, stated.channels);
    for await (const { channelData, samplesDecoded, sampleRate } of decodePieces(codec, bytes)) {
      if (samplesDecoded > 0) recording.add(mixed(channelData, samplesDecoded), sampleRate, channelData.length);
    }
  }
  return recording.end();
}

/** Number of frames of a WAV file that are read at a time. */
const WAV_FRAMES = 65_536;

function addWav(bytes: Uint8Array, recording: Recording): void {
  const { rate, channels, frames, read } = readWav(bytes);
  checkChannels(channels);
  recording.checkLength(frames, rate, channels);
  for (let from = 0; from < frames; from += WAV_FRAMES) {
    recording.add(read(from, Math.min(frames, from + WAV_FRAMES)), rate, channels);
  }
}

function mixed(channels: readonly Float32Array[], frames: number): Float32Array {
  checkChannels(channels.length);
  const mono = new Float32Array(frames);
  for (const channel of channels) {
    for (let i = 0; i < frames; i++) mono[i] = (mono[i] ?? 0) + (channel[i] ?? 0) / channels.length;
  }
  return mono;
}

function checkChannels(channels: number): void {
  if (channels < 1 || channels > MOST_CHANNELS) throw new AudioFault('undecodable', `it has ${channels} channels`);
}

/** Collects the decoded pieces of a recording, and resamples them to 16 kHz. */
class Recording {
  readonly #mostSamples: number;
  readonly #pieces: Float32Array[] = [];
  #resampler: Resampler | null = null;
  #rate = 0;
  #frames = 0;

  constructor(mostSamples: number) {
    this.#mostSamples = mostSamples;
  }

  add(samples: Float32Array, rate: number, channels: number): void {
    this.checkLength(this.#frames + samples.length, rate, channels);
    if (this.#resampler && rate !== this.#rate) throw new AudioFault('undecodable', 'its sample rate changes');
    this.#resampler ??= new Resampler(rate, PREPARED_RATE);
    this.#rate = rate;
    this.#frames += samples.length;
    this.#pieces.push(this.#resampler.push(samples));
  }

  checkLength(frames: number, rate: number, channels = 1): void {
    if (!(rate >= LEAST_RATE && rate <= MOST_RATE))
      throw new AudioFault('undecodable', `its sample rate is ${rate} Hz`);
    if (frames > MOST_SECONDS * rate) throw new AudioFault('too_large', `it is longer than ${MOST_SECONDS} s`);
    if (frames * channels > MOST_SAMPLES) {
      throw new AudioFault('too_many_samples', `its ${channels} channels have more than ${MOST_SAMPLES} samples`);
    }
    // A tenth of a second more, because headers and resampling round.
    if (frames / rate > this.#mostSamples / PREPARED_RATE + 0.1) {
      throw new AudioFault('too_long', 'it is longer than the model can read');
    }
  }

  end(): Float32Array {
    if (!this.#resampler) throw new AudioFault('undecodable', 'it has no samples');
    this.#pieces.push(this.#resampler.end());
    const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
    const samples = new Float32Array(length);
    let into = 0;
    for (const piece of this.#pieces) {
      samples.set(piece, into);
      into += piece.length;
    }
    return samples;
  }
}

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

/** Maximum bytes of decoded samples that are cached: about 17 minutes. */
const KEPT_BYTES = 64 * 2 ** 20;

/** Caches the samples of the recordings that were decoded last, by the hash of their files. */
export class RecentAudio {
  /** Samples by file hash, the least recently kept first. */
  readonly #samples = new Map<string, Float32Array>();
  #bytes = 0;

  get(sha256: string): Float32Array | undefined {
    return this.#samples.get(sha256);
  }

  /**
   * Adds a recording to the cache as the latest, or makes it the latest, and removes the oldest ones beyond
   * `KEPT_BYTES`.
   */
  keep(sha256: string, samples: Float32Array): void {
    this.#forget(sha256);
    this.#samples.set(sha256, samples);
    this.#bytes += samples.byteLength;
    for (const oldest of [...this.#samples.keys()]) if (this.#bytes > KEPT_BYTES) this.#forget(oldest);
  }

  #forget(sha256: string): void {
    this.#bytes -= this.#samples.get(sha256)?.byteLength ?? 0;
    this.#samples.delete(sha256);
  }
}
