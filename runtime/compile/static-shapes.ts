import type { StaticShape } from '../onnx/static/plain-attention.ts';

/** New cells of a run: few for a step of all branches, many for a prompt. Runs of other lengths are padded or split. */
const CHUNKS = [16, 128] as const;
/** Smallest number of past cells, and the factor between sizes: short contexts do not read the cells of a long one. */
const SMALLEST_PAST = 512;
const GROWTH = 3;
/** Lengths are multiples of this, because accelerators compute in tiles. */
const GRANULE = 64;
/**
 * Cells for the answer after a prompt of full length. Fixed shapes need a bound; a chat has 1,024 tokens by default
 * (M-21).
 */
const ANSWER_CELLS = 1024;

/** Rows of logits of one run of the head. */
export const HEAD_ROWS = 16;

/**
 * Returns the positions of prompt and answer together with fixed shapes: a prompt of full length and its answer, within
 * the model's context.
 */
export function staticContext(maxPromptLen: number, contextLength: number): number {
  return Math.min(contextLength, roundUp(maxPromptLen) + ANSWER_CELLS);
}

/** Returns the shapes to compile for sequences of up to `cells` cells, smallest first. */
export function staticShapes(cells: number): StaticShape[] {
  const largest = roundUp(cells);
  const pasts: number[] = [];
  for (let past = SMALLEST_PAST; past * 1.5 < largest; past *= GROWTH) pasts.push(past);
  pasts.push(largest);
  return CHUNKS.flatMap((chunk) => pasts.map((past) => ({ chunk, past })));
}

function roundUp(cells: number): number {
  return Math.ceil(cells / GRANULE) * GRANULE;
}
