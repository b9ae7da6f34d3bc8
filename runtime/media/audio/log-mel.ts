import { at } from '../../../lib/at.ts';
import { HOP, type MelPlan } from '../media-plan.ts';
import { PREPARED_RATE } from './limits.ts';

/** Number of samples in a window of the Fourier transform. */
const WINDOW = 400;
const BINS = WINDOW / 2 + 1;
/**
 * Factors of the window size: the transform of 400 values is computed as 16 transforms of 25 values, and then one of 16
 * for each frequency (Cooley and Tukey, 1965).
 */
const [OUTER, INNER] = [16, 25];

/**
 * Computes the log-mel values of a recording at 16 kHz as Whisper's feature extractor does. Returns one chunk `[bands,
 * frames of the chunk]` after another. Steps: a Hann window, the power spectrum, Slaney's mel bands, log10, a floor at
 * 80 dB below the loudest value of all chunks, and scaling. Source: transformers 4.57, `feature_extraction_whisper.py`
 * and `audio_utils.py`.
 */
export function logMel(samples: Float32Array, plan: MelPlan): Float32Array {
  const { bands, frames, chunkFrames } = plan;
  const length = frames * HOP;
  const filters = melFilters(bands);
  const power = new Float64Array(BINS);
  const window = new Float64Array(WINDOW);
  const logs = new Float32Array(bands * frames);
  let loudest = Number.NEGATIVE_INFINITY;
  for (let frame = 0; frame < frames; frame++) {
    const start = frame * HOP - WINDOW / 2;
    for (let i = 0; i < WINDOW; i++) window[i] = (samples[mirrored(start + i, length)] ?? 0) * (HANN[i] ?? 0);
    powerSpectrum(window, power);
    const chunk = frame - (frame % chunkFrames);
    const line = Math.min(chunkFrames, frames - chunk);
    const into = chunk * bands + (frame - chunk);
    for (const [band, { from, weights }] of filters.entries()) {
      let sum = 0;
      for (let i = 0; i < weights.length; i++) sum += (weights[i] ?? 0) * (power[from + i] ?? 0);
      const log = Math.log10(Math.max(1e-10, sum));
      logs[into + band * line] = log;
      if (log > loudest) loudest = log;
    }
  }
  for (let i = 0; i < logs.length; i++) logs[i] = (Math.max(logs[i] ?? 0, loudest - 8) + 4) / 4;
  return logs;
}

/** Returns the index of the sample to use at `index`: beyond its ends, a recording continues as its mirror image. */
function mirrored(index: number, length: number): number {
  if (index < 0) return -index;
  return index < length ? index : 2 * (length - 1) - index;
}

const HANN = Float64Array.from({ length: WINDOW }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW));
const COS = Float64Array.from({ length: WINDOW }, (_, i) => Math.cos((2 * Math.PI * i) / WINDOW));
const SIN = Float64Array.from({ length: WINDOW }, (_, i) => Math.sin((2 * Math.PI * i) / WINDOW));
const REAL = new Float64Array(WINDOW);
const IMAGINARY = new Float64Array(WINDOW);

/**
 * Writes the squared magnitudes of the discrete Fourier transform of 400 real values to `power`, without their mirror
 * image.
 */
function powerSpectrum(values: Float64Array, power: Float64Array): void {
  // The inputs are real, so the second half of each inner transform mirrors the first.
  for (let outer = 0; outer < OUTER; outer++) {
    for (let k = 0; k <= INNER / 2; k++) {
      let real = 0;
      let imaginary = 0;
      for (let i = 0, turn = 0; i < INNER; i++, turn = (turn + k * OUTER) % WINDOW) {
        const value = values[i * OUTER + outer] ?? 0;
        real += value * (COS[turn] ?? 0);
        imaginary -= value * (SIN[turn] ?? 0);
      }
      REAL[outer * INNER + k] = real;
      IMAGINARY[outer * INNER + k] = imaginary;
      if (k > 0) {
        REAL[(outer + 1) * INNER - k] = real;
        IMAGINARY[(outer + 1) * INNER - k] = -imaginary;
      }
    }
  }
  for (let k = 0; k < BINS; k++) {
    let real = 0;
    let imaginary = 0;
    for (let outer = 0, turn = 0, from = k % INNER; outer < OUTER; outer++, turn = (turn + k) % WINDOW, from += INNER) {
      const [cos, sin, re, im] = [COS[turn] ?? 0, SIN[turn] ?? 0, REAL[from] ?? 0, IMAGINARY[from] ?? 0];
      real += re * cos + im * sin;
      imaginary += im * cos - re * sin;
    }
    power[k] = real * real + imaginary * imaginary;
  }
}

/** Weights of one mel band, from frequency bin `from` on. All other weights are 0. */
interface Band {
  from: number;
  weights: Float64Array;
}

/** Returns triangular bands from 0 to 8 kHz on Slaney's mel scale, each with the same area. */
function melFilters(bands: number): Band[] {
  const top = toMel(PREPARED_RATE / 2);
  const edges = Array.from({ length: bands + 2 }, (_, i) => toHertz((top * i) / (bands + 1)));
  return Array.from({ length: bands }, (_, band) => {
    const [low, middle, high] = [at(edges, band), at(edges, band + 1), at(edges, band + 2)];
    const all = Float64Array.from({ length: BINS }, (_, bin) => {
      const hertz = (bin * PREPARED_RATE) / WINDOW;
      const height = Math.min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      return (Math.max(0, height) * 2) / (high - low);
    });
    const from = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    );
    return { from, weights: all.slice(from, all.findLastIndex((weight) => weight > 0) + 1) };
  });
}

/**
 * Natural logarithm of the frequency ratio of one mel above 1 kHz, where Slaney's scale is logarithmic. Below, it is
 * linear and reaches 15 mel at 1 kHz.
 */
const PER_MEL = Math.log(6.4) / 27;

function toMel(hertz: number): number {
  return hertz < 1000 ? (3 * hertz) / 200 : 15 + Math.log(hertz / 1000) / PER_MEL;
}

function toHertz(mel: number): number {
  return mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp(PER_MEL * (mel - 15));
}
