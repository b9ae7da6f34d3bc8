/** Byte between texts; no string reads it. */
const BETWEEN = 0;
/** The characters that no string contains (`TEXT` of `../text/code-points.ts`). */
const UNWRITTEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{10ffff}]/u;
const SPACE = /\s/u;

/**
 * Holds texts that strings must be quoted from, as the bytes with which a JSON string writes them. A quotation is a
 * part of one text that neither begins nor ends with white space.
 */
export class QuotedTexts {
  readonly bytes: Uint8Array;
  /** Offsets in `bytes` at which a quotation may begin. */
  readonly beginnings: Int32Array;
  /** For each of the `beginnings`, the number of characters up to the end of its text. */
  readonly #lengths: Int32Array;
  /** For each offset: 0 within a character, 1 after white space, 2 after another character. */
  readonly #after: Uint8Array;

  constructor(texts: readonly string[]) {
    const encoder = new TextEncoder();
    const beginnings: number[] = [];
    const lengths: number[] = [];
    const ends: [offset: number, kind: number][] = [];
    const parts: Uint8Array[] = [Uint8Array.of(BETWEEN)];
    let offset = 1;
    // White space at the end of a part belongs to no quotation: a string that continued with it could not end.
    for (const text of texts.flatMap((one) => one.split(UNWRITTEN)).map((one) => one.trimEnd())) {
      const characters = [...text];
      characters.forEach((character, i) => {
        if (!SPACE.test(character)) {
          beginnings.push(offset);
          lengths.push(characters.length - i);
        }
        const written = JSON.stringify(character);
        offset += written.length === 3 ? encoder.encode(character).length : encoder.encode(written).length - 2;
        ends.push([offset, SPACE.test(character) ? 1 : 2]);
      });
      parts.push(encoder.encode(JSON.stringify(text).slice(1, -1)), Uint8Array.of(BETWEEN));
      offset++;
    }
    this.bytes = new Uint8Array(offset);
    let end = 0;
    for (const part of parts) {
      this.bytes.set(part, end);
      end += part.length;
    }
    this.beginnings = Int32Array.from(beginnings);
    this.#lengths = Int32Array.from(lengths);
    this.#after = new Uint8Array(offset);
    for (const [end, kind] of ends) this.#after[end] = kind;
  }

  /** Returns the offsets at which a quotation of at least `min` characters may begin. */
  beginningsOf(min: number): Int32Array {
    return min <= 1 ? this.beginnings : this.beginnings.filter((_, i) => (this.#lengths[i] ?? 0) >= min);
  }

  /** Tells whether a character ends before an offset. */
  isBoundary(offset: number): boolean {
    return this.#after[offset] !== 0;
  }

  /** Tells whether a quotation may end before an offset, after a character that is not white space. */
  mayEnd(offset: number): boolean {
    return this.#after[offset] === 2;
  }
}
