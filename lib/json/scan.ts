const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Objects and arrays that may be open at once (open-points.md, part A, "JSON"). */
export const MAX_DEPTH = 64;

/**
 * Whether more than `max` objects and arrays are open at once anywhere. Reads the text once, without recursion, and knows
 * strings from structure; what else may be wrong with the text is for `JSON.parse` to say.
 */
export function isDeeperThan(text: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at) - 1;
    } else if (code === 0x7b || code === 0x5b) {
      depth++;
      if (depth > max) return true;
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return false;
}

/** The index behind the string that begins with the quote at `start`; the text's length where it does not end. */
export function endOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

/**
 * Whether an escape writes half a surrogate pair (`\ud83d` without its other half): no text, and impossible in UTF-8, so no
 * answer could repeat it (RFC 8259, section 8.2; RFC 7493, section 2.1).
 */
export function hasLoneSurrogate(text: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  // Takes escapes one by one from the left, so that the `\ud800` in `\\ud800` is not mistaken for one.
  const escapes = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)/gs;
  for (const [, lone] of text.matchAll(escapes)) {
    if (lone !== undefined) return true;
  }
  return false;
}
