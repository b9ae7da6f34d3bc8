/** Describes the shape of a static graph: the number of new cells of one run, and of past cells that they may see. */
export interface StaticShape {
  chunk: number;
  past: number;
}

/**
 * Numbers of new cells for which graphs are compiled: few for a decode step of all branches, many for a prompt. Runs of
 * other lengths are padded or split.
 */
const CHUNKS = [16, 128] as const;
/**
 * Smallest number of past cells for which a graph is compiled. Each further size is `GROWTH` times as large, except for
 * the last, so a run on a short context does not compute the cells of a long one.
 */
const SMALLEST_PAST = 512;
const GROWTH = 3;
/** Numbers of past cells are multiples of this, because accelerators compute in tiles. */
const GRANULE = 64;
/**
 * Number of cells for the answer after a prompt of full length, since static graphs need a bound. The default limit of
 * an answer in a chat is 1,024 tokens (docs/model-api.md, M-21).
 */
const ANSWER_CELLS = 1024;

/** Number of rows whose logits one run of the head computes. */
export const HEAD_ROWS = 16;

/**
 * Returns the context length of static graphs in tokens: a prompt of full length and its answer, within the model's own
 * context.
 */
export function staticContext(maxPromptLen: number, contextLength: number): number {
  return Math.min(contextLength, roundUp(maxPromptLen) + ANSWER_CELLS);
}

/**
 * Returns the shapes to compile, for sequences of up to `cells` cells: for each chunk size all past sizes, smallest
 * first.
 */
export function staticShapes(cells: number): StaticShape[] {
  const largest = roundUp(cells);
  const pasts: number[] = [];
  for (let past = SMALLEST_PAST; past * 1.5 < largest; past *= GROWTH) pasts.push(past);
  pasts.push(largest);
  return CHUNKS.flatMap((chunk) => pasts.map((past) => ({ chunk, past })));
}

/**
 * Numbers of new cells in a run, on devices that run one graph for all shapes. More sizes than in `CHUNKS` cost nothing
 * there.
 */
const KERNEL_CHUNKS = [16, 128, 512] as const;
/** Smallest number of past cells in a run, on the same devices. */
const SMALLEST_KERNEL_PAST = 256;

/**
 * Returns the shapes in which to run a graph for all shapes, for up to `cells` past cells. All cells of a shape are
 * copied to the device, so each number of past cells is at most twice the one before it.
 */
export function kernelShapes(cells: number): StaticShape[] {
  const pasts: number[] = [];
  for (let past = SMALLEST_KERNEL_PAST; past < cells; past *= 2) pasts.push(past);
  pasts.push(cells);
  return KERNEL_CHUNKS.flatMap((chunk) => pasts.map((past) => ({ chunk, past })));
}

function roundUp(cells: number): number {
  return Math.ceil(cells / GRANULE) * GRANULE;
}
