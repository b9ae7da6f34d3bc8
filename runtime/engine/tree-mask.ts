import type { Sequence } from './sequence.ts';

/** Added to the score of a column that a token must not see; its weight becomes exactly 0. */
const HIDDEN = -1e9;

/**
 * Writes the additive mask of the columns from `start` to `length`, `[new, all]` row by row: a token sees the columns it
 * descends from, and of these, with a window, only the last `window` positions (itself among them).
 */
export function writeTreeMask(
  into: Float32Array,
  { linear, parents, positions }: Sequence,
  start: number,
  length: number,
  window: number | null,
): void {
  for (let column = start; column < length; column++) {
    const row = (column - start) * length;
    const first = window === null ? 0 : positions[column]! - window + 1;
    let ancestor = column;
    into.fill(HIDDEN, row, row + length);
    while (ancestor >= linear) {
      if (positions[ancestor]! >= first) into[row + ancestor] = 0;
      ancestor = parents[ancestor]!;
    }
    // From here on the ancestors are the trunk, where columns are positions.
    if (ancestor >= 0) into.fill(0, row + Math.min(Math.max(0, first), ancestor + 1), row + ancestor + 1);
  }
}

/** Whether the operator's own causal mask is all that the columns up to `length` need. */
export function isPlainCausal(sequence: Sequence, length: number, window: number | null): boolean {
  return sequence.linear >= length && (window === null || length <= window);
}
