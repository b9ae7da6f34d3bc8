import { at } from '../../../lib/at.ts';
import type { Sequence } from '../cache/sequence.ts';

/** Value added to the attention score of a cell that a token must not see; its weight becomes exactly 0. */
const HIDDEN = -1e9;

/**
 * Writes the additive attention mask of the cells from `start` to before `length`, `[length - start, length]` row by
 * row. A token sees its ancestors and itself; with a sliding window, only the last `window` positions of these.
 */
export function writeTreeMask(
  into: Float32Array,
  { trunkLength, parents, positions }: Sequence,
  start: number,
  length: number,
  window: number | null,
): void {
  for (let cell = start; cell < length; cell++) {
    const row = (cell - start) * length;
    const first = window === null ? 0 : at(positions, cell) - window + 1;
    let ancestor = cell;
    into.fill(HIDDEN, row, row + length);
    while (ancestor >= trunkLength) {
      if (at(positions, ancestor) >= first) into[row + ancestor] = 0;
      ancestor = at(parents, ancestor);
    }
    // The remaining ancestors are in the trunk, where the index of a cell is its position.
    if (ancestor >= 0) into.fill(0, row + Math.min(Math.max(0, first), ancestor + 1), row + ancestor + 1);
  }
}

/** Tells whether the first `length` cells need no mask beyond the attention operator's own causal one. */
export function isPlainCausal(sequence: Sequence, length: number, window: number | null): boolean {
  return sequence.trunkLength >= length && (window === null || length <= window);
}
