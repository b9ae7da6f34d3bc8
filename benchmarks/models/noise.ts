import { Random } from '../../runtime/engine/random.ts';

const BLOCK = 1 << 20;

/**
 * Generates gigabytes of random weights quickly, by reading one block of uniform noise repeatedly from different
 * offsets.
 */
export class Noise {
  readonly #random: Random;
  readonly #block = new Float32Array(BLOCK);

  constructor(seed: number) {
    this.#random = new Random(seed);
    for (let at = 0; at < BLOCK; at++) this.#block[at] = 2 * this.#random.uniform() - 1;
  }

  /**
   * Yields `count` random numbers between -amplitude and amplitude in bfloat16 (the upper half of a float's bits), in
   * chunks.
   */
  *bfloat16(count: number, amplitude: number): Generator<Uint8Array> {
    const scaled = this.#block.map((value) => value * amplitude);
    const bits = new Uint32Array(scaled.buffer);
    const halves = Uint16Array.from(bits, (word) => word >>> 16);
    for (let left = count; left > 0; ) {
      const from = Math.floor(this.#random.uniform() * (BLOCK / 2));
      const piece = halves.subarray(from, Math.min(BLOCK, from + left));
      yield new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
      left -= piece.length;
    }
  }

  /** Yields `count` random bytes, in chunks whose length is a multiple of `block`. The caller may modify the chunks. */
  *bytes(count: number, block: number): Generator<Uint8Array<ArrayBuffer>> {
    const source = new Uint8Array(this.#block.buffer);
    const most = Math.floor(source.length / 2 / block) * block;
    for (let left = count; left > 0; left -= most) {
      const from = Math.floor(this.#random.uniform() * (source.length / 2));
      yield source.slice(from, from + Math.min(most, left));
    }
  }
}
