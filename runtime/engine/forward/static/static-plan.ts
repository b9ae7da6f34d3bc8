import { at } from '../../../../lib/at.ts';
import type { Sequence } from '../../cache/sequence.ts';

/** Describes one run of a static graph: its new cells are those from `first` to before `end`. */
export interface StaticRun {
  first: number;
  end: number;
  /** Number of new tokens that the graph computes, including padding. */
  chunk: number;
  /** Number of past cells that the graph reads, including unused ones. */
  past: number;
  /** Cells of the sequence that form the past, in order; null if the sequence's buffers are fed as they are. */
  pastCells: readonly number[] | null;
}

export interface StaticSize {
  chunk: number;
  past: number;
}

/**
 * Number of runs of a chunk size that cost as much as one run of the next larger size. If the remaining cells fit in at
 * most this many, the smaller size is used.
 */
const SMALL_RUNS = 3;

/**
 * Splits the cells from `start` on into runs of the given sizes. `sizes` must have every past size for every chunk
 * size. Throws a RangeError if a cell sees more past cells than the largest size has.
 */
export function planRuns(sequence: Sequence, start: number, sizes: readonly StaticSize[]): StaticRun[] {
  const chunks = ascending(sizes.map(({ chunk }) => chunk));
  const pasts = ascending(sizes.map(({ past }) => past));
  const runs: StaticRun[] = [];
  for (let first = start; first < sequence.length; ) {
    const chunk = chunkFor(sequence.length - first, chunks);
    let end = Math.min(sequence.length, first + chunk);
    let pastCells = seenBefore(sequence, first, end);
    // Branches side by side may together see more past cells than fit; those of one cell always fit.
    while (pastCells.length > pasts.at(-1)! && end > first + 1) {
      end = first + Math.ceil((end - first) / 2);
      pastCells = seenBefore(sequence, first, end);
    }
    const past = pasts.find((size) => size >= pastCells.length);
    if (past === undefined)
      throw new RangeError(`cell ${first} sees ${pastCells.length} cells, more than any graph has`);
    runs.push({ first, end, chunk, past, pastCells: past === sequence.capacity ? null : pastCells });
    first = end;
  }
  return runs;
}

function chunkFor(count: number, chunks: readonly number[]): number {
  const fitting = chunks.find((chunk) => count <= chunk) ?? chunks.at(-1)!;
  const smaller = chunks[chunks.indexOf(fitting) - 1];
  return smaller !== undefined && count <= smaller * SMALL_RUNS ? smaller : fitting;
}

/** Returns the cells below `first` that are ancestors of the cells from `first` to before `end`, ascending. */
function seenBefore(sequence: Sequence, first: number, end: number): number[] {
  const { parents, trunkLength } = sequence;
  const branched = new Set<number>();
  let trunk = 0;
  for (let cell = first; cell < end; cell++) {
    let ancestor = at(parents, cell);
    while (ancestor >= trunkLength && !(ancestor < first && branched.has(ancestor))) {
      if (ancestor < first) branched.add(ancestor);
      ancestor = at(parents, ancestor);
    }
    if (ancestor < trunkLength) trunk = Math.max(trunk, Math.min(ancestor + 1, first));
  }
  const pastCells = Array.from({ length: trunk }, (_, cell) => cell);
  return pastCells.concat([...branched].sort((a, b) => a - b));
}

function ascending(sizes: readonly number[]): number[] {
  return [...new Set(sizes)].sort((a, b) => a - b);
}

/**
 * Value added to the attention score of a cell that a token must not see: low enough for a weight of 0, and within the
 * range of 16-bit floats.
 */
const HIDDEN = -10_000;

/**
 * Writes the additive attention mask of a run, `[chunk, past + chunk]`. A token sees its ancestors and itself; with a
 * sliding window, only the last `window` positions of these. Padding rows see only themselves and are never read.
 */
export function writeStaticMask(
  into: Float32Array,
  sequence: Sequence,
  { first, end, chunk, past, pastCells }: StaticRun,
  window: number | null,
): void {
  const { trunkLength, parents, positions } = sequence;
  const width = past + chunk;
  into.fill(HIDDEN);
  const pastCellOf = pastCells && new Map(pastCells.map((cell, index) => [cell, index]));
  const columnOf = (cell: number): number => (cell >= first ? past + cell - first : (pastCellOf?.get(cell) ?? cell));
  for (let cell = first; cell < end; cell++) {
    const row = (cell - first) * width;
    const lowest = window === null ? 0 : at(positions, cell) - window + 1;
    let ancestor = cell;
    while (ancestor >= trunkLength || ancestor >= first) {
      if (at(positions, ancestor) >= lowest) into[row + columnOf(ancestor)] = 0;
      ancestor = at(parents, ancestor);
    }
    // From here on the ancestors are the trunk before this run, where a cell's index is its position and its index
    // among the past cells.
    if (ancestor >= 0) into.fill(0, row + Math.min(Math.max(0, lowest), ancestor + 1), row + ancestor + 1);
  }
  for (let spare = end - first; spare < chunk; spare++) into[spare * width + past + spare] = 0;
}
