/** Samples per second of decoded audio, which the encoders of all supported models expect. */
export const PREPARED_RATE = 16_000;
/**
 * Longest recording in seconds. The length is bounded after decoding, because silence in FLAC grows a thousand times.
 */
export const MOST_SECONDS = 600;
/** Accepted sample rates in samples per second. Those of common recordings are in this range. */
export const LEAST_RATE = 8_000;
export const MOST_RATE = 192_000;
/** Most channels of a file. They are mixed into one. */
export const MOST_CHANNELS = 8;
