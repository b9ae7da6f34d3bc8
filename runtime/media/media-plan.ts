import * as v from 'valibot';
import { MOST_SECONDS, PREPARED_RATE } from './audio/limits.ts';
import { PixelPlan, pixelBytes, tileBytes } from './pixel-plan.ts';

/** Number of samples between the starts of two consecutive frames. */
export const HOP = 160;
/** Number of frames in the longest chunk: 30 seconds, which Whisper's encoder reads at a time. */
export const MOST_CHUNK_FRAMES = (30 * PREPARED_RATE) / HOP;

/** Plan for converting a recording to frames of log-mel values: chunks of `[bands, frames of the chunk]`. */
export const MelPlan = v.strictObject({
  bands: v.picklist([80, 128]),
  /** Total number of frames. Those beyond the end of the recording are silence. */
  frames: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(2),
    v.maxValue((MOST_SECONDS * PREPARED_RATE) / HOP + MOST_CHUNK_FRAMES),
  ),
  /** Number of frames in a chunk. The last chunk may have fewer. */
  chunkFrames: v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(MOST_CHUNK_FRAMES)),
});
export type MelPlan = v.InferOutput<typeof MelPlan>;

/** Returns the number of bytes of the log-mel values of `frames` frames, as 32-bit floats. */
function melBytes({ bands }: MelPlan, frames: number): number {
  return bands * frames * 4;
}

/** Plan for preparing a file for an encoder: as tiles of pixels, or as chunks of log-mel values. */
export const MediaPlan = v.union([PixelPlan, MelPlan]);
export type MediaPlan = v.InferOutput<typeof MediaPlan>;

/**
 * Returns the number of bytes of a prepared file (`total`), and of each piece that the encoder reads at a time
 * (`piece`). The last piece may be shorter.
 */
export function preparedBytes(plan: MediaPlan): { total: number; piece: number } {
  if ('tile' in plan) return { total: pixelBytes(plan), piece: tileBytes(plan) };
  return { total: melBytes(plan, plan.frames), piece: melBytes(plan, plan.chunkFrames) };
}
