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
