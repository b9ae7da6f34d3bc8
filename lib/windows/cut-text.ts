/** Locates a window in a text: the index of its first UTF-16 code unit, and that after its last. */
export interface Window {
  start: number;
  end: number;
}

/** Patterns of places where a text may be cut, from the best to the worst: a window may end where a match ends. */
const PLACES = [/\n\s*\n\s*/g, /[.!?…。！？]["'”’)\]]*\s+|[。！？]|\n/g, /\s+/g];

/**
 * Cuts a text into windows of at most `size` code units, each of which repeats the last `overlap` code units of the one
 * before, or less. A window ends after a paragraph, a sentence or a word, if one ends within its last `slack` code
 * units, and begins at one, too.
 */
export function cutText(text: string, size: number, overlap: number, slack = Math.floor(size / 4)): Window[] {
  const windows: Window[] = [];
  for (let start = 0; ; ) {
    const most = Math.min(start + size, text.length);
    const end = most === text.length ? most : placeBetween(text, Math.max(start + 1, most - slack), most);
    windows.push({ start, end });
    if (end === text.length) return windows;
    // The next window must end after this one, so it begins in its second half at the earliest.
    const earliest = Math.max(end - overlap, start + Math.ceil((end - start) / 2));
    start = earliest >= end ? end : firstPlace(text, earliest, end);
  }
}

/** Returns the best place to cut between two indices: the last one of the best kind, or `most` if there is none. */
function placeBetween(text: string, least: number, most: number): number {
  const part = text.slice(least, most);
  for (const place of PLACES) {
    let found = -1;
    for (const match of part.matchAll(place)) found = match.index + match[0].length;
    if (found > 0) return least + found;
  }
  return wholeCharacter(text, most);
}

/** Returns the first place of the best kind between two indices, or `least` if there is none. */
function firstPlace(text: string, least: number, most: number): number {
  // The place may be that index itself.
  const part = text.slice(least - 1, most);
  for (const place of PLACES) {
    for (const match of part.matchAll(place)) {
      const at = match.index + match[0].length;
      if (at < part.length) return least - 1 + at;
    }
  }
  return wholeCharacter(text, least);
}

/** Returns an index, or the one before it if it splits a character in two code units. */
function wholeCharacter(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff ? index - 1 : index;
}
