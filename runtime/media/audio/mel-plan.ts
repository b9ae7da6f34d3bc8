import * as v from 'valibot';
import { MOST_SECONDS, PREPARED_RATE } from './limits.ts';

/** Number of samples between the starts of two frames. */
export const HOP = 160;
/** Longest chunk in seconds, which is what Whisper's encoder reads. */
const MOST_CHUNK_SECONDS = 30;

/** Plan for converting a recording to frames of log-mel values, `[chunks, bands, frames of a chunk]`. */
export const MelPlan = v.strictObject({
  bands: v.picklist([80, 128]),
  /** Number of samples in a chunk. The last chunk is padded with silence. */
  chunkSamples: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(HOP),
    v.maxValue(PREPARED_RATE * MOST_CHUNK_SECONDS),
    v.multipleOf(HOP),
  ),
  chunks: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_SECONDS)),
});
export type MelPlan = v.InferOutput<typeof MelPlan>;

/** Returns the number of frames in one chunk. */
export function framesOf({ chunkSamples }: MelPlan): number {
  return chunkSamples / HOP;
}

/** Returns the number of bytes of one chunk's values, which are 32-bit floats. */
export function chunkBytes(plan: MelPlan): number {
  return plan.bands * framesOf(plan) * 4;
}
