import * as v from 'valibot';
import { chunkBytes, MelPlan } from './audio/mel-plan.ts';
import { PixelPlan, pixelBytes, tileBytes } from './pixel-plan.ts';

/** Describes how a file is prepared for an encoder: as tiles of pixels, or as chunks of log-mel values. */
export const MediaPlan = v.union([PixelPlan, MelPlan]);
export type MediaPlan = v.InferOutput<typeof MediaPlan>;

/** Returns the bytes of a prepared file, and those of one piece: what the encoder reads at once. */
export function preparedBytes(plan: MediaPlan): { total: number; piece: number } {
  if ('tile' in plan) return { total: pixelBytes(plan), piece: tileBytes(plan) };
  return { total: plan.chunks * chunkBytes(plan), piece: chunkBytes(plan) };
}
