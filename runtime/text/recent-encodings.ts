/** Texts shorter than this are encoded faster than they are looked up. */
const MIN_LENGTH = 512;

/**
 * Token ids of long texts that were encoded lately: the contexts that requests come back to. Least recently used out;
 * `maxLength` bounds the characters of all texts together.
 */
export class RecentEncodings {
  readonly #maxLength: number;
  readonly #ids = new Map<string, readonly number[]>();
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** The ids of `text`, made by `encode` where they are not known. `kind` tells encodings of one text apart. */
  get(kind: string, text: string, encode: () => number[]): readonly number[] {
    if (text.length < MIN_LENGTH || text.length > this.#maxLength) return encode();
    const key = kind + text;
    const ids = this.#ids.get(key) ?? encode();
    if (!this.#ids.delete(key)) this.#length += key.length;
    this.#ids.set(key, ids);
    for (const oldest of this.#ids.keys()) {
      if (this.#length <= this.#maxLength) break;
      this.#ids.delete(oldest);
      this.#length -= oldest.length;
    }
    return ids;
  }
}
