/**
 * Generates reproducible random numbers: sfc32 (Chris Doty-Humphrey, PractRand), seeded through splitmix32. The same
 * seed gives the same numbers on every machine.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    const low = seed >>> 0;
    const high = Math.floor(Math.abs(seed) / 2 ** 32) >>> 0;
    let state = (low ^ Math.imul(high, 0x9e3779b9)) >>> 0;
    const splitmix = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return mixed ^ (mixed >>> 15);
    };
    [this.#a, this.#b, this.#c] = [splitmix(), splitmix(), splitmix()];
    for (let i = 0; i < 12; i++) this.#next();
  }

  /** Returns a uniformly distributed number in [0, 1) with 53 random bits. */
  uniform(): number {
    return ((this.#next() >>> 5) * 2 ** 26 + (this.#next() >>> 6)) / 2 ** 53;
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}
