/** Samples per second of decoded audio, which the encoders of all supported models expect. */
export const PREPARED_RATE = 16_000;
/**
 * Longest recording in seconds. The limit applies to the decoded length, because FLAC compresses silence a
 * thousandfold.
 */
export const MOST_SECONDS = 600;
/** Lowest accepted sample rate, in samples per second. */
export const LEAST_RATE = 8_000;
/** Highest accepted sample rate, in samples per second. */
export const MOST_RATE = 192_000;
/**
 * Maximum number of samples of a recording, over all channels: those of the longest one in stereo at 48 kHz. It bounds
 * the time of decoding, which compressed silence in many channels would make a hundred times as long.
 */
export const MOST_SAMPLES = MOST_SECONDS * 48_000 * 2;
/** Maximum number of channels. They are mixed into one. */
export const MOST_CHANNELS = 8;

type AudioFaultKind = 'undecodable' | 'encoding' | 'too_large' | 'too_long' | 'too_many_samples';

/**
 * Reports why audio was not decoded. `too_large`: the recording is longer than `MOST_SECONDS`. `too_long`: it is longer
 * than the loaded model can read. `too_many_samples`: all its channels have more than `MOST_SAMPLES` together.
 * `encoding`: its samples have an encoding that is not supported. `undecodable`: any other reason, which `message`
 * names.
 */
export class AudioFault extends Error {
  readonly kind: AudioFaultKind;

  constructor(kind: AudioFaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
