/** Maximum bytes of decoded samples that are cached: about 17 minutes. */
const KEPT_BYTES = 64 * 2 ** 20;

/** Caches the samples of the recordings that were decoded last, by the hash of their files. */
export class RecentAudio {
  /** Samples by file hash, the least recently kept first. */
  readonly #samples = new Map<string, Float32Array>();
  #bytes = 0;

  get(sha256: string): Float32Array | undefined {
    return this.#samples.get(sha256);
  }

  /**
   * Adds a recording to the cache as the latest, or makes it the latest, and removes the oldest ones beyond
   * `KEPT_BYTES`.
   */
  keep(sha256: string, samples: Float32Array): void {
    this.#forget(sha256);
    this.#samples.set(sha256, samples);
    this.#bytes += samples.byteLength;
    for (const oldest of [...this.#samples.keys()]) if (this.#bytes > KEPT_BYTES) this.#forget(oldest);
  }

  #forget(sha256: string): void {
    this.#bytes -= this.#samples.get(sha256)?.byteLength ?? 0;
    this.#samples.delete(sha256);
  }
}
