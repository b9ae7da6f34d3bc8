import * as v from 'valibot';
import { MelPlan, melBytes } from './audio/mel-plan.ts';
import { PixelPlan, pixelBytes, tileBytes } from './pixel-plan.ts';

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
