/** Describes a piece of a template's text: one control token, or text without any. */
export type Piece = { control: number } | { text: string };

/** First of the private-use characters that represent control tokens, in the order of `controls`. */
const BASE = 0x100000;
const CODED = /([\u{100000}-\u{10FFFD}])/u;

/**
 * Replaces each control token in a text by one private-use character. A comparison of texts then cannot split a token.
 *
 * @param controls id of each control token, by its text
 */
export function codeControls(text: string, controls: ReadonlyMap<string, number>): string {
  // Longer ones first, because a token may begin with the text of another.
  const found = [...controls.keys()].filter((control) => control !== '' && text.includes(control));
  const indices = new Map([...controls.keys()].map((control, i) => [control, i]));
  let coded = text;
  for (const control of found.sort((a, b) => b.length - a.length)) {
    coded = coded.replaceAll(control, String.fromCodePoint(BASE + (indices.get(control) ?? 0)));
  }
  return coded;
}

/**
 * Splits a text from `codeControls` into control tokens and the texts between them. `controls` must be the same map.
 */
export function piecesOf(coded: string, controls: ReadonlyMap<string, number>): Piece[] {
  const ids = [...controls.values()];
  return coded
    .split(CODED)
    .filter((part) => part !== '')
    .map((part) => (CODED.test(part) ? { control: ids[(part.codePointAt(0) ?? BASE) - BASE] ?? -1 } : { text: part }));
}

/** Returns the longest common beginning of two texts. */
export function sharedStart(one: string, other: string): string {
  const [a, b] = [Array.from(one), Array.from(other)];
  const end = a.findIndex((character, i) => character !== b[i]);
  return end < 0 ? one : a.slice(0, end).join('');
}
