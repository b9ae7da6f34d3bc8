/**
 * Number of zero crossings on each side of the filter, and the shape parameter of its Kaiser window. With them, the
 * stop band is below −85 dB.
 */
const CROSSINGS = 32;
const BETA = 8.6;

/**
 * Changes the sample rate of a recording that arrives in pieces. A windowed sinc filter removes frequencies that the
 * new rate cannot represent. Source: Smith, "Digital Audio Resampling", https://ccrma.stanford.edu/~jos/resample/.
 */
export class Resampler {
  readonly #up: number;
  readonly #down: number;
  readonly #half: number;
  readonly #cut: number;
  /** Filters by phase of the output sample; those that were not needed yet are absent. */
  readonly #phases: Float32Array[] = [];
  /** Input samples that later outputs still need. The first has the input index `#first`. */
  #held = new Float32Array(0);
  #first = 0;
  #received = 0;
  #made = 0;

  constructor(from: number, to: number) {
    const divisor = greatestCommonDivisor(from, to);
    this.#up = to / divisor;
    this.#down = from / divisor;
    this.#cut = Math.min(1, this.#up / this.#down);
    this.#half = Math.ceil(CROSSINGS / this.#cut);
  }

  /** Adds input samples. Returns the output samples that no later input sample can change. */
  push(samples: Float32Array): Float32Array {
    if (this.#up === this.#down) return samples;
    const held = new Float32Array(this.#held.length + samples.length);
    held.set(this.#held);
    held.set(samples, this.#held.length);
    this.#held = held;
    this.#received += samples.length;
    return this.#take(this.#received - this.#half);
  }

  /** Returns the remaining output samples, as if silence followed the recording. */
  end(): Float32Array {
    return this.#up === this.#down ? this.#held : this.#take(this.#received);
  }

  /** Returns the next output samples, those centred before input index `end`. */
  #take(end: number): Float32Array {
    const total = Math.max(this.#made, Math.ceil((end * this.#up) / this.#down));
    const out = new Float32Array(total - this.#made);
    for (let i = 0; i < out.length; i++) {
      const position = (this.#made + i) * this.#down;
      const filter = this.#filter(position % this.#up);
      const start = Math.floor(position / this.#up) - this.#half - this.#first;
      const last = Math.min(filter.length, this.#held.length - start);
      let sum = 0;
      for (let tap = Math.max(0, -start); tap < last; tap++) sum += (this.#held[start + tap] ?? 0) * (filter[tap] ?? 0);
      out[i] = sum;
    }
    this.#made = total;
    const needed = Math.floor((total * this.#down) / this.#up) - this.#half;
    const drop = Math.min(this.#held.length, Math.max(0, needed - this.#first));
    this.#held = this.#held.slice(drop);
    this.#first += drop;
    return out;
  }

  /** Returns the filter of a phase. Rates that share few factors have many, more than a short recording needs. */
  #filter(phase: number): Float32Array {
    this.#phases[phase] ??= filterOf(phase / this.#up, this.#cut, this.#half);
    return this.#phases[phase];
  }
}

/**
 * Returns the filter for output samples that follow an input sample by `offset`, a fraction of the distance between
 * input samples.
 */
function filterOf(offset: number, cut: number, half: number): Float32Array {
  const filter = new Float32Array(2 * half + 1);
  for (let tap = 0; tap < filter.length; tap++) {
    const distance = tap - half - offset;
    const along = (Math.abs(distance) * cut) / CROSSINGS;
    if (along >= 1) continue;
    const angle = Math.PI * cut * distance;
    filter[tap] = cut * (angle === 0 ? 1 : Math.sin(angle) / angle) * kaiser(along);
  }
  return filter;
}

/** Number of intervals of the table of window values. Linear interpolation between them is exact to 1e-7. */
const INTERVALS = 4096;
let table: Float64Array | undefined;

/**
 * Returns the Kaiser window at a distance from its middle, from 0 to 1. Reads a table, because rates that share few
 * factors need millions of values, and each would take a series.
 */
function kaiser(distance: number): number {
  table ??= Float64Array.from({ length: INTERVALS + 2 }, (_, i) => {
    return bessel(BETA * Math.sqrt(Math.max(0, 1 - (i / INTERVALS) ** 2))) / bessel(BETA);
  });
  const at = distance * INTERVALS;
  const index = Math.trunc(at);
  const [before = 0, after = 0] = [table[index], table[index + 1]];
  return before + (at - index) * (after - before);
}

/** Returns the modified Bessel function of the first kind and order 0, computed by its series. */
function bessel(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
