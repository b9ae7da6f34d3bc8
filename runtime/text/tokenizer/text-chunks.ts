/**
 * Number of characters in a chunk. Encoding a whole text at once takes memory for all of it, and more than linear time
 * in the length of a word.
 */
const CHUNK = 16_384;
/** Number of characters before the end of a chunk in which to look for a place to split. */
const REACH = 4_096;

const LETTER = /\p{L}/u;

/**
 * Splits a text into chunks of at most 16,384 characters, where every tokenizer for running text begins a new word:
 * before a space between letters, and after a line break before a letter. A text without such places (data, one endless
 * word) is split at that length.
 */
export function* textChunks(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > CHUNK) {
    const cut = placeToCut(text, from + CHUNK);
    yield text.slice(from, cut);
    from = cut;
  }
  yield text.slice(from);
}

function placeToCut(text: string, end: number): number {
  for (let at = end; at > end - REACH; at--) {
    if (text[at] === ' ' && isLetter(text[at - 1]) && isLetter(text[at + 1])) return at;
    if (text[at - 1] === '\n' && isLetter(text[at])) return at;
  }
  // Never splits a surrogate pair.
  return /[\uDC00-\uDFFF]/u.test(text.charAt(end)) ? end - 1 : end;
}

function isLetter(character: string | undefined): boolean {
  return character !== undefined && LETTER.test(character);
}
