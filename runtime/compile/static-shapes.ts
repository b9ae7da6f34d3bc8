import type { StaticShape } from '../onnx/static/plain-attention.ts';

/**
 * New cells of a run: few for a step of all branches, many for a prompt. A run in between is padded, or done in
 * several.
 */
const CHUNKS = [16, 128] as const;
/**
 * The smallest number of past cells, and how much larger the next is: short contexts do not read the whole of a long
 * one.
 */
const SMALLEST_PAST = 512;
const GROWTH = 3;
/** Lengths are multiples of this: accelerators compute in tiles. */
const GRANULE = 64;
/**
 * Cells for the answer behind a prompt of full length. Fixed shapes need a bound, and a chat has 1,024 tokens by
 * default.
 */
const ANSWER_CELLS = 1024;

/** Rows of logits of one run of the head. */
export const HEAD_ROWS = 16;

/**
 * Positions of prompt and answer together, where shapes are fixed: what a prompt of full length and its answer need,
 * within the model's context.
 */
export function staticContext(maxPromptLen: number, contextLength: number): number {
  return Math.min(contextLength, roundUp(maxPromptLen) + ANSWER_CELLS);
}

/** The shapes to compile for sequences of up to `cells` cells, the smallest first. */
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
