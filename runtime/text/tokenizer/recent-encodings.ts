/**
 * Length of the shortest text that is cached, in characters. Shorter ones are encoded faster than they are looked up.
 */
const MIN_LENGTH = 512;

/**
 * Caches the token ids of long texts, such as a context that many requests share. Evicts the least recently used.
 * `maxLength` bounds the number of characters of all cached texts together.
 */
export class RecentEncodings {
  readonly #maxLength: number;
  readonly #ids = new Map<string, readonly number[]>();
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /**
   * Returns the token ids of `text`, from the cache or by calling `encode`. Encodings of the same text with different
   * `kind` are cached separately. Texts of fewer than 512 or more than `maxLength` characters are not cached.
   */
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
