/** Samples a second of prepared audio: what the encoders of all families read. */
export const PREPARED_RATE = 16_000;
/** Longest recording, decoded: bytes say nothing, as silence in FLAC grows a thousand times. */
export const MOST_SECONDS = 600;
/** Sample rates that are read; those of files that people make are between. */
export const LEAST_RATE = 8_000;
export const MOST_RATE = 192_000;
/** Channels of a file that are read, mixed into one. */
export const MOST_CHANNELS = 8;
