/** The longest run of tokens that is compared: a longer match predicts no better. */
const LONGEST_MATCH = 8;

/** Describes an earlier place in a text that looks like its end. */
export interface Continuation {
  /** Tokens at the end of the text that are the same there. */
  matched: number;
  /** Index in the text of the first token that followed. */
  from: number;
}

/**
 * Finds the longest end of a text that occurs in it before, the last time it does (prompt lookup decoding: Saxena,
 * 2023). What followed there is likely to follow again where an answer copies from its prompt. Null where not even the
 * last token occurs before.
 */
export function continuationOf(text: readonly number[]): Continuation | null {
  const end = text.length - 1;
  let best: Continuation | null = null;
  for (let last = end - 1; last >= 0; last--) {
    let matched = 0;
    while (matched < LONGEST_MATCH && matched <= last && text[last - matched] === text[end - matched]) matched++;
    if (matched > (best?.matched ?? 0)) best = { matched, from: last + 1 };
    if (matched === LONGEST_MATCH) break;
  }
  return best;
}
