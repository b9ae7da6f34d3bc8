/**
 * Chunks shorter than this are copied into one buffer. A chunk object takes about 100 bytes of memory, so a body in
 * chunks of one byte would take a hundred times the bytes that its budget counts.
 */
const COPIED_BELOW = 8 * 1024;
const BUFFER_BYTES = 16 * 1024;

/** Collects the bytes of a body. Its memory is proportional to their number, however short the chunks are. */
export class BodyBytes {
  #pieces: Uint8Array[] = [];
  #total = 0;
  /** Copies of the latest short chunks: `#used` bytes of `#buffer`. */
  #buffer: Uint8Array | undefined;
  #used = 0;

  /** Adds the next chunk. The caller must not change it afterwards, because a large one is not copied. */
  push(chunk: Uint8Array): void {
    this.#total += chunk.byteLength;
    if (chunk.byteLength >= COPIED_BELOW) {
      this.#keepBuffered();
      this.#pieces.push(chunk);
      return;
    }
    this.#buffer ??= new Uint8Array(BUFFER_BYTES);
    if (this.#used + chunk.byteLength > BUFFER_BYTES) this.#keepBuffered();
    this.#buffer.set(chunk, this.#used);
    this.#used += chunk.byteLength;
  }

  /** Returns all bytes in order. A single large chunk is returned itself, not as a copy. */
  joined(): Uint8Array {
    this.#keepBuffered();
    const [only] = this.#pieces;
    if (only && this.#pieces.length === 1) return only;
    const bytes = new Uint8Array(this.#total);
    let at = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, at);
      at += piece.byteLength;
    }
    return bytes;
  }

  /** Drops all bytes. */
  clear(): void {
    this.#pieces = [];
    this.#buffer = undefined;
    this.#total = this.#used = 0;
  }

  #keepBuffered(): void {
    if (this.#buffer && this.#used > 0) this.#pieces.push(this.#buffer.slice(0, this.#used));
    this.#used = 0;
  }
}
