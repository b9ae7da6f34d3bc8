/** Maximum number of tokens to compare: a longer match predicts no better. */
const LONGEST_MATCH = 8;

/** Describes an earlier occurrence of the last tokens of a text. */
export interface Continuation {
  /** Length of the occurrence in tokens. */
  matched: number;
  /** Index of the token after the occurrence: the first one that is likely to come next. */
  from: number;
}

/**
 * Finds the longest suffix of a text, up to 8 tokens, that also occurs earlier in it; of several occurrences the last
 * one (prompt lookup decoding: Saxena, 2023). Where an answer copies from its prompt, the tokens after that occurrence
 * are likely to come next. Returns null if not even the last token occurs earlier.
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
