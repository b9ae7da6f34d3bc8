import * as v from 'valibot';
import { MOST_SECONDS, PREPARED_RATE } from './limits.ts';

/** Samples from one frame to the next. */
export const HOP = 160;
/** Longest chunk, in seconds: what Whisper's encoder reads. */
const MOST_CHUNK_SECONDS = 30;

/** Describes how a recording becomes frames of log-mel values, `[chunks, bands, frames of a chunk]`. */
export const MelPlan = v.strictObject({
  bands: v.picklist([80, 128]),
  /** Samples of a chunk; the last chunk is filled with silence. */
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

/** Returns the frames of one chunk. */
export function framesOf({ chunkSamples }: MelPlan): number {
  return chunkSamples / HOP;
}

/** Returns the bytes of one chunk's values: floats of 32 bits. */
export function chunkBytes(plan: MelPlan): number {
  return plan.bands * framesOf(plan) * 4;
}
