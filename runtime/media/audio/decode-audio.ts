import { AudioFault } from './audio-fault.ts';
import { decodePieces } from './decoders.ts';
import { LEAST_RATE, MOST_CHANNELS, MOST_RATE, MOST_SAMPLES, MOST_SECONDS, PREPARED_RATE } from './limits.ts';
import { readWav } from './read-wav.ts';
import { Resampler } from './resample.ts';
import { sniffCodec } from './sniff-audio.ts';
import { statedLength } from './stated-length.ts';

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
