const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Maximum nesting depth: objects and arrays that are open at once (docs/interface.md, D-10). */
export const MAX_DEPTH = 64;

/**
 * Maximum number of members and items in one body. For each of them, `JSON.parse` takes about a microsecond and up to
 * 100 bytes.
 */
export const MAX_PARTS = 250_000;

/** Describes a JSON text whose syntax was not checked. */
export interface JsonOutline {
  /**
   * The limit that the text exceeds first: `depth` for more than `MAX_DEPTH` objects and arrays open at once, `parts`
   * for more than `maxParts` members and items, counted by their commas and opening brackets; null if it exceeds
   * neither.
   */
  excess: 'depth' | 'parts' | null;
  /** Tells whether the text may have a number, or a name of digits. */
  hasDigits: boolean;
}

/** Returns the limit that a JSON text exceeds first (`JsonOutline.excess`). */
export function excessOf(text: string, maxParts = MAX_PARTS): JsonOutline['excess'] {
  return outlineOf(text, maxParts).excess;
}

/** Reads a JSON text once, without recursion. */
export function outlineOf(text: string, maxParts: number): JsonOutline {
  let depth = 0;
  let parts = 0;
  let hasDigits = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const first = text.charCodeAt(at + 1);
      at = endOfString(text, at) - 1;
      hasDigits ||= isDigit(first) && isDigit(text.charCodeAt(at - 1));
    } else if (code === 0x7b || code === 0x5b) {
      depth++;
      parts++;
      if (depth > MAX_DEPTH) return { excess: 'depth', hasDigits };
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    } else if (code === 0x2c) {
      parts++;
    } else if (isDigit(code)) {
      hasDigits = true;
    }
    if (parts > maxParts) return { excess: 'parts', hasDigits };
  }
  return { excess: null, hasDigits };
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/**
 * Returns the index after the closing quote of the string whose opening quote is at `start`; the length of the text if
 * the string does not end.
 */
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
 * Tells whether a JSON text contains an escape for half a surrogate pair (`\ud83d` without its other half). A string
 * with one cannot be encoded in UTF-8, so no answer could repeat it (RFC 8259, section 8.2; RFC 7493, section 2.1).
 */
export function hasLoneSurrogate(text: string): boolean {
  // Most texts have no `\u` escape, and this test is ten times faster than the loop below.
  if (!text.includes('\\u')) return false;
  const half = /u[dD][89a-fA-F]/y;
  const pair = /u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/y;
  // Reads the escapes one by one from the left; otherwise the end of `\\ud800`, an escaped backslash and plain text,
  // would be mistaken for an escape.
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', at)) {
    half.lastIndex = pair.lastIndex = ++at;
    if (text.charCodeAt(at) === 0x75 && half.test(text)) {
      if (!pair.test(text)) return true;
      at = pair.lastIndex;
    } else at++;
  }
  return false;
}

/** Steps through a JSON text, whose syntax is not checked. */
export class JsonCursor {
  readonly text: string;
  /** Index of the next UTF-16 code unit. */
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Returns the next character that is no white space; an empty text at the end. */
  peek(): string {
    while (/\s/.test(this.text[this.at] ?? '')) this.at++;
    return this.text[this.at] ?? '';
  }

  /** Reads a string. */
  string(): string {
    const start = this.at;
    this.at = endOfString(this.text, start);
    return JSON.parse(this.text.slice(start, this.at));
  }

  /** Reads a number, true, false or null, and returns its text. */
  word(): string {
    const start = this.at;
    while (this.at < this.text.length && !/[\s,\]}]/.test(this.text[this.at] ?? '')) this.at++;
    return this.text.slice(start, this.at);
  }

  /** Steps through the items of an array; the cursor is at each of them. */
  *items(): Generator<number> {
    this.at++;
    if (this.peek() === ']') this.at++;
    else
      for (let i = 0; ; i++) {
        yield i;
        this.peek();
        if (this.text[this.at++] !== ',') return;
        this.peek();
      }
  }

  /** Steps through the members of an object, by their names; the cursor is at the value of each of them. */
  *members(): Generator<string> {
    this.at++;
    if (this.peek() === '}') this.at++;
    else
      for (;;) {
        const name = this.string();
        this.peek();
        this.at++;
        this.peek();
        yield name;
        this.peek();
        if (this.text[this.at++] !== ',') return;
        this.peek();
      }
  }
}
