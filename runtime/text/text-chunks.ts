/** Characters of one piece. Encoding takes more than linear time in the length of a word, and memory in that of a text. */
const PIECE = 16_384;
/** How far back from the end of a piece a place to cut is looked for. */
const REACH = 4_096;

const LETTER = /\p{L}/u;

/**
 * Cuts a long text where every tokenizer for running text begins a new word anyway: before a space between letters, and
 * behind a line break before a letter. A text without such places (data, one endless word) is cut at the piece's length.
 */
export function* textPieces(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > PIECE) {
    const cut = placeToCut(text, from + PIECE);
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
  // Never between the halves of a surrogate pair.
  return /[\uDC00-\uDFFF]/u.test(text[end]!) ? end - 1 : end;
}

function isLetter(character: string | undefined): boolean {
  return character !== undefined && LETTER.test(character);
}
